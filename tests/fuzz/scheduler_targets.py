"""The scheduler's sockets: bytes go into a batch of the real actor over a real database."""

import shutil
import tempfile
from pathlib import Path

import msgspec

from cronward.protocol import ids, launch, outcome, run
from cronward.protocol.errors import Code
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.launch import GatewayState, Gone, PoolState, RefuseReason, RunState
from cronward.scheduler.requests import METHODS, Arrived
from tests.fuzz.mutation import Mutator
from tests.support.scheduler_bench import CLIENT, EXECUTOR, KEY, LAUNCHER, Bench

COMMAND: dict[str, object] = {"kind": "command", "argv": ["/bin/true"], "env": {"A": "b"}, "timeoutSeconds": 5}
STEP_MS = (0, 0, 0, 1, 1000, 60_000)


class _Scheduler:
    """One actor with a queued, an active and a finished run; a new one each time it is renewed."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="cw-fuzz-"))
        self._bench: Bench | None = None
        self._count = 0
        self.job_id = self.active = self.finished = ""

    @property
    def bench(self) -> Bench:
        assert self._bench is not None
        return self._bench

    def renew(self) -> None:
        self.close_bench()
        self._count += 1
        self._bench = bench = Bench(self._root / str(self._count))
        bench.reconcile()
        job = bench.add(name="job")
        self.job_id = job.id
        self.finished = bench.start(job)
        bench.report(self.finished)
        self.active = bench.start(job)

    def keep_active(self) -> None:
        """There is an active run again if the last input ended it."""
        if self.bench.sql("SELECT 1 FROM runs WHERE run_id = ? AND state = 'active'", self.active):
            return
        self.bench.reconcile()
        self.finished = self.active
        job = self.bench.add()
        self.job_id = job.id
        self.active = self.bench.start(job)

    def turn(self, data: bytes) -> None:
        """Some time passes, in a way that the same input repeats."""
        self.bench.turn(STEP_MS[len(data) % len(STEP_MS)])
        for kept in (self.bench.ports.launch_wire.sent, self.bench.ports.run_wire.sent, self.bench.launches):
            kept.clear()
        self.bench.ports.events.clear()
        self.bench.ports.waited_ms.clear()

    def close_bench(self) -> None:
        if self._bench is not None:
            self._bench.connection.close()
            self._bench = None
            shutil.rmtree(self._root / str(self._count))

    def close(self) -> None:
        self.close_bench()
        shutil.rmtree(self._root)


class Requests(_Scheduler):
    """`control` and `query`: each request gets exactly one answer, and never INTERNAL."""

    def make(self, mutator: Mutator) -> bytes:
        method, params = mutator.chance.choice(self._requests())
        request: object = {"type": "req", "id": 7, "method": method, "params": params}
        if mutator.chance.random() < 0.9:
            request = mutator.value(request)
        data = msgspec.json.encode(request)
        return mutator.data(data) if mutator.chance.random() < 0.3 else data

    def feed(self, data: bytes) -> None:
        answers = self.bench.ports.answers
        answers.clear()
        socket = "query" if len(data) % 3 == 0 else "control"
        self.bench.ports.batch.requests.append(Arrived(socket, CLIENT, data, "localhost:0:0:77"))
        self.turn(data)
        assert len(answers) == 1, answers
        assert answers[0].error is None or answers[0].error.code != Code.INTERNAL, answers[0]

    def _requests(self) -> list[tuple[str, dict[str, object]]]:
        job: dict[str, object] = {"id": self.job_id}
        at, cron = {"kind": "at", "at": "2027-06-01T00:00:00Z"}, {"kind": "cron", "expr": "*/5 3 * * 1-5", "tz": "UTC"}
        every = {"kind": "every", "everyMs": 60_000, "anchorMs": 5}
        retry = {"preset": "goclaw", "delaysSeconds": [1, 2], "jitter": 0.5, "backoffSeconds": [30]}
        full: dict[str, object] = {
            "name": "full",
            "retry": retry,
            "catchUp": {"policy": "all", "maxRuns": 3},
            "pacing": {"min": "30s", "max": "1h"},
            "declarationKey": "k",
            "owner": {"agentId": "a"},
            "requestId": "r",
        }
        found: dict[str, list[dict[str, object]]] = {
            "cron.add": [
                {"schedule": at, "payload": COMMAND, "deleteAfterRun": True},
                {"schedule": cron, "payload": COMMAND} | full,
                {"schedule": every, "payload": COMMAND, "displayName": "d", "description": "text"},
            ],
            "cron.update": [
                job | {"patch": {"schedule": cron, "enabled": False, "name": "n"}, "reschedule": True},
                job | {"patch": {"payload": {"argv": ["/bin/false"]}, "retry": retry}, "cancel": True},
            ],
            "cron.remove": [{"id": "full"}],
            "cron.run": [job | {"mode": "due", "requestId": "q"}, job],
            "cron.get": [job],
            "cron.list": [{"includeDisabled": True, "limit": 10, "offset": 1, "query": "x", "sortBy": "name"}],
            "cron.runs": [{"scope": "all", "live": True, "status": "ok"}, job | {"runId": self.active}],
            "run.get": [{"runId": self.finished}, {"runId": ids.run_key(self.active)[:8]}],
            "run.cancel": [{"runId": self.active, "why": "w"}, {"runId": self.active, "abandon": True}],
            "service.drain": [{"kill": True}],
            "service.backup": [{"path": "/proc/no-such-directory/backup"}],
        }
        return [(method, params) for method in (*METHODS, "service.backup") for params in found.get(method, [{}])]


class FromLauncher(_Scheduler):
    """`launch`: whatever a launcher says, the actor goes on and its database stays as its constraints want it."""

    def make(self, mutator: Mutator) -> bytes:
        self.keep_active()
        return mutator.message(launch.encode(mutator.chance.choice(self._messages())))

    def feed(self, data: bytes) -> None:
        self.bench.ports.batch.launch.append((LAUNCHER, data))
        self.turn(data)

    def _messages(self) -> list[launch.FromLauncher]:
        link = self.bench.world.link
        saved = outcome.encode(self.bench.outcome(self.active))
        found = {self.active: RunState.HELD, "unknown": RunState.OVER}
        return [
            launch.Register(ProcessIdentity(7, 8, "boot-a"), "0.1.0"),
            launch.Inventory(link.instance, link.epoch, found),
            launch.Inventory(link.instance, link.epoch, {self.active: RunState.ABSENT}),
            launch.Accepted(self.active, 99),
            launch.Refused(self.active, RefuseReason.SPAWN_FAILED, "no"),
            launch.Exited(self.active, Gone.REPORTED, saved),
            launch.Exited(self.finished, Gone.INTERRUPTED, None, "why", 2),
            launch.Heartbeat(link.instance, link.epoch, GatewayState.UP, PoolState(1, 2, 3, 4, 5), "full"),
            launch.Leaving(link.instance, link.epoch),
            launch.Forgotten([self.finished, "unknown"]),
        ]


class FromExecutor(_Scheduler):
    """`run`: the same for executors, with the right secret and without."""

    def make(self, mutator: Mutator) -> bytes:
        self.keep_active()
        return mutator.message(run.encode(mutator.chance.choice(self._messages(mutator))))

    def feed(self, data: bytes) -> None:
        self.bench.ports.batch.run.append((EXECUTOR, data))
        self.turn(data)

    def _messages(self, mutator: Mutator) -> list[run.FromExecutor]:
        messages: list[run.FromExecutor] = []
        for run_id in (self.active, self.finished, "unknown"):
            secret = ids.run_secret(KEY, run_id)
            body = mutator.message(outcome.encode(self.bench.outcome(run_id)))
            messages += [run.Hello(run_id, secret, 99), run.Progress(run_id, "running", 1, 2)]
            messages += [run.Report(run_id, secret, body, True)]
        return messages
