"""A real executor: packets on its pair and answers on `run`. It lives on, stays small, and does its next run well."""

import fcntl
import os
import shutil
import socket
import tempfile
from pathlib import Path

import msgspec

from cronward.protocol import pair, run
from cronward.protocol.outcome import Status
from tests.fuzz.mutation import Mutator
from tests.support.executor_rig import Executor, Rig
from tests.support.processes import memory_kib

GROWTH_MAX_KIB = 16 * 1024
RUN_EACH = 200
"""Inputs between two runs that have to go well."""


class _Executor:
    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="cw-fuzz-"))
        self.rig = Rig(self._root)
        # Its log goes to a pipe that nobody reads meanwhile.
        self.executor: Executor = self.rig.start({"CRONWARD_LOG_LEVEL": "critical"})
        self._rss_kib = 0
        self._inputs = 0

    def renew(self) -> None:
        """It has not grown since the first time."""
        rss_kib = memory_kib(self.executor.pid, "VmRSS")
        self._rss_kib = self._rss_kib or rss_kib
        assert rss_kib < self._rss_kib + GROWTH_MAX_KIB

    def close(self) -> None:
        self.rig.close()
        shutil.rmtree(self._root)

    def is_time_for_a_run(self) -> bool:
        self._inputs += 1
        return self._inputs % RUN_EACH == 0

    def settle(self) -> None:
        """Takes what the executor says, so that nothing fills up."""
        self.rig.scheduler.serve()
        self.executor.read()
        for heard in (self.rig.scheduler.hellos, self.rig.scheduler.progress, self.rig.scheduler.reports):
            heard.clear()
        self.executor.packets.clear()

    def assert_runs(self) -> None:
        """What it was handed by then comes first."""
        run_id = self.rig.begin(self.executor, "/bin/true")
        while self.rig.packet(self.executor, pair.Free).run != run_id:
            continue
        assert self.rig.reported(run_id).status is Status.OK
        shutil.rmtree(self.rig.directory(run_id))


class Packets(_Executor):
    """The launcher's packets, with a lock and without."""

    def make(self, mutator: Mutator) -> bytes:
        if self.is_time_for_a_run():
            self.assert_runs()
        where = mutator.chance.choice((str(self._root / "nowhere"), str(self._root / "\0"), "/dev/null", "x" * 5000))
        packets: list[pair.ToExecutor] = [pair.HandOver("run", where, "secret"), pair.CancelRun("run", "why")]
        data = mutator.message(pair.encode(mutator.chance.choice(packets)))
        return data[:100_000] if self._is_harmless(data) else b"\x93"

    def feed(self, data: bytes) -> None:
        if len(data) % 3:
            self.executor.pair.send(data or b"\0")
        else:
            fd = os.open(self._root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            fcntl.flock(fd, fcntl.LOCK_EX)
            socket.send_fds(self.executor.pair, [data or b"\0"], [fd])
            os.close(fd)
            (self._root / "lock").unlink()
        self.settle()

    def _is_harmless(self, data: bytes) -> bool:
        """An executor writes its outcome wherever it is told to: nowhere outside of the scratch directory."""
        try:
            packet = pair.decode_to_executor(data)
        except msgspec.DecodeError:
            return True
        where = packet.directory if isinstance(packet, pair.HandOver) else ""
        return not where or where.startswith((str(self._root / "nowhere"), "/dev/null"))


class Answers(_Executor):
    """The scheduler's answers, while a run is held that only the right one may end."""

    def __init__(self) -> None:
        super().__init__()
        self._run = ""

    def make(self, mutator: Mutator) -> bytes:
        if not self._run or not self.rig.is_locked(self._run):
            self._run = self.rig.begin(self.executor, "/bin/sleep", "1000")
            self.rig.wait_for("a greeting", lambda: any(hello.run == self._run for hello in self.rig.scheduler.hellos))
        messages: list[run.ToExecutor] = [
            run.HelloAnswer(self._run, "instance", None),
            run.HelloAnswer("another", "instance", "cancelled"),
            run.Recorded(self._run),
            run.Recorded("another"),
        ]
        data = msgspec.msgpack.encode(
            mutator.value(msgspec.msgpack.decode(run.encode(mutator.chance.choice(messages))))
        )
        return mutator.data(data) if mutator.chance.random() < 0.3 else data

    def feed(self, data: bytes) -> None:
        self.rig.scheduler.send_raw(self._run, data)
        self.settle()
