"""The load of a round, and its witness: jobs whose commands write down themselves that they began and ended."""

import random
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from cronward.cli.session import pause
from cronward.cli.torture_scratch import Scratch, Stuck
from cronward.protocol.client import ControlClient, Unanswered
from cronward.protocol.errors import Code, CronwardError, Unreachable
from cronward.protocol.ids import new_request_id, slot_run_id
from cronward.protocol.views import JobView, RunAnswer, RunList, RunView

PROGRAM = (sys.executable, "-I", "-S", str(Path(__file__).with_name("torture_task.py")))
"""`FILE LABEL MS` follow."""

FORKING = '(sleep 60 & setsid sleep 60 &) >/dev/null 2>&1; exec "$@"'
"""A command that leaves a child, and one in a session of its own, which must not outlive it."""

TICK_MS = 500
LONG_MS = 1000
NEVER_MS = 365 * 86_400_000
MANUAL_JOBS = 4
_STORE_KEY = "main"
_ASK_MS = 300
_GIVE_UP_MS = 60_000
_PAGE = 200


class Marks(msgspec.Struct):
    """How often a run's command wrote that it began, and that it ended."""

    starts: int = 0
    ends: int = 0


class SideLog:
    """What the commands wrote, by run."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.marks: dict[str, Marks] = {}
        self._offset = 0

    def read(self) -> set[str]:
        """Takes what is new; the runs that wrote it."""
        if not self.file.exists():
            return set()
        with self.file.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        lines = [line.split(" ") for line in whole.decode().splitlines()]
        for _, label, run in lines:
            marks = self.marks.setdefault(run, Marks())
            if label.endswith(":start"):
                marks.starts += 1
            else:
                marks.ends += 1
        return {run for _, _, run in lines}


class Load:
    """Jobs of one scratch installation. `planned` are the runs of this round that must come to be, with a name for
    people; `answered` those that were asked for by hand."""

    def __init__(self, scratch: Scratch, rng: random.Random, program: Sequence[str], *, fork: bool) -> None:
        self.sidelog = SideLog(scratch.root / "sidelog")
        self.planned: dict[str, str] = {}
        self._scratch = scratch
        self._rng = rng
        self._program = program
        self._fork = fork
        self._count = 0
        self._requests: list[Requests] = []
        self.anchor_ms = scratch.clock.wall_ms()
        every = {"kind": "every", "everyMs": TICK_MS, "anchorMs": self.anchor_ms}
        self.ticker = self._add("tick", every, stay_ms=10).id
        never = {"kind": "every", "everyMs": NEVER_MS}
        self._manual = [self._add(f"manual{number}", never, stay_ms=20).id for number in range(MANUAL_JOBS)]

    def wave(self, long_runs: int) -> int:
        """Adds one-shots, more than can run at once, and asks for runs by hand meanwhile. Returns when the one-shots
        are due. `long_runs` of them last long."""
        count = self._scratch.capacity + 2
        due_ms = self._scratch.clock.wall_ms() + 60 + 8 * count
        for number in range(count):
            stay_ms = LONG_MS if number < long_runs else self._rng.randint(2, 40)
            self._one_shot(due_ms + self._rng.randint(0, 30), stay_ms)
        requests = Requests(self._scratch, self._manual, self._rng.randint(0, 2**32), due_ms - 20)
        self._requests.append(requests)
        requests.thread.start()
        return due_ms

    def probe(self) -> str:
        """A one-shot that is due at once; its run's id."""
        return self._one_shot(self._scratch.clock.wall_ms() + 20, stay_ms=2)

    def finish_requests(self) -> None:
        """Waits for answers to everything that was asked for. Raises Stuck."""
        for requests in self._requests:
            requests.thread.join(_GIVE_UP_MS / 1000)
            if requests.problem or requests.thread.is_alive():
                raise Stuck(requests.problem or "a request to run a job was never answered")
            self.planned.update(requests.runs)
        self._requests.clear()

    def records(self) -> list[RunView]:
        """The newest records, newest first, more than this round can have made."""
        found: list[RunView] = []
        offset: int | None = 0
        while offset is not None and len(found) < len(self.planned) + _PAGE // 2:
            params: dict[str, object] = {"scope": "all", "live": True, "limit": _PAGE, "offset": offset}
            page = self._scratch.client().request("cron.runs", params, RunList)
            found += page.entries
            offset = page.next_offset
        return found

    def job(self, job_id: str) -> JobView:
        return self._scratch.client().request("cron.get", {"id": job_id}, JobView)

    def _one_shot(self, due_ms: int, stay_ms: int) -> str:
        name = f"once{self._count}"
        self._count += 1
        job = self._add(name, {"kind": "at", "at": str(due_ms)}, stay_ms)
        run = slot_run_id(_STORE_KEY, job.id, due_ms)
        self.planned[run] = name
        return run

    def _add(self, name: str, schedule: dict[str, object], stay_ms: int) -> JobView:
        argv = [*self._program, str(self.sidelog.file), name, str(stay_ms)]
        if self._fork:
            argv = ["sh", "-c", FORKING, "sh", *argv]
        job: dict[str, object] = {"name": name, "schedule": schedule, "requestId": new_request_id()}
        # The variable makes the command's processes known as the scratch installation's.
        job["payload"] = {"kind": "command", "argv": argv, "env": {"TORTURE": str(self._scratch.root)}}
        if schedule["kind"] == "at":
            job["deleteAfterRun"] = False
        return self._scratch.client().request("cron.add", job, JobView)


class Requests:
    """Asks for a run of each job from a thread of its own, and again until it is answered, whatever happens to the
    scheduler meanwhile. `runs` are those that were promised; `problem` says what went wrong."""

    def __init__(self, scratch: Scratch, jobs: Iterable[str], seed: int, begin_ms: int) -> None:
        self.runs: dict[str, str] = {}
        self.problem = ""
        self.thread = threading.Thread(target=self._ask_for_all, name="requests", daemon=True)
        self._clock = scratch.clock
        self._path = scratch.paths.control
        self._jobs = list(jobs)
        self._rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._begin_ms = begin_ms

    def _ask_for_all(self) -> None:
        try:
            pause(max(0, self._begin_ms - self._clock.wall_ms()))
            with ControlClient(self._path, self._clock) as client:
                for job in self._jobs:
                    pause(self._rng.uniform(0, 30))
                    self._ask_for(client, job)
        except CronwardError as error:
            self.problem = f"a request to run a job was refused: {error.message}"

    def _ask_for(self, client: ControlClient, job: str) -> None:
        """The same request id for the same request, so that an answer that was lost is given again."""
        end_ms = self._clock.mono_ms() + _GIVE_UP_MS
        params: dict[str, object] = {"id": job, "requestId": new_request_id()}
        while self._clock.mono_ms() < end_ms:
            try:
                answer = client.request("cron.run", params, RunAnswer, _ASK_MS)
            except (Unreachable, Unanswered):
                continue
            except CronwardError as error:
                if error.code is not Code.STOPPING:
                    raise
                pause(20)
                continue
            if answer.run_id is not None:
                self.runs[answer.run_id] = job
            if answer.reason != "stopped":  # what the job's earlier run, still live, refuses is refused for good
                return
            params["requestId"] = new_request_id()
            pause(20)
        self.problem = "a request to run a job was never answered"


def count_states(records: Iterable[RunView]) -> Counter[str]:
    """How often each result occurs: `ok`, or the reason."""
    return Counter(record.reason or record.state for record in records)
