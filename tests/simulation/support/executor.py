"""A simulated executor: holds one run, says hello, does what the job's words say, reports until it is acknowledged."""

from enum import Enum
from random import Random

from cronward.protocol import ids, outcome, run
from cronward.protocol import job as jobs
from cronward.protocol.outcome import Outcome, Reason, Status
from cronward.protocol.run import HELLO_INTERVAL_MS, OUTCOME_HOLD_MS, OUTCOME_RESEND_MS
from tests.simulation.support.machine import Machine
from tests.simulation.support.scheduler import KEY
from tests.simulation.support.seen import TaskEnded, TaskStarted

ABSENT_RETRY_MS = 30_000
"""Instead of each second while there is no scheduler to hear it."""

FAILURES = (Reason.EXIT_CODE, Reason.EXIT_CODE, Reason.TIMED_OUT, Reason.SIGNAL, Reason.NO_OUTPUT)


class Phase(Enum):
    """What is in the run's directory, and whether anybody holds its lock."""

    HELD = "held"
    SAVED = "saved"
    """An outcome is there; the executor still holds the lock."""
    FREE = "free"
    """Nobody holds it. With an outcome the run is over, without one it was interrupted."""


class SimulatedExecutor:
    """With its run's directory, which outlives it."""

    def __init__(self, machine: Machine, run_id: str, definition: bytes, number: int) -> None:
        self.run_id = run_id
        self.phase = Phase.HELD
        self.outcome: bytes | None = None
        self.recorded = False
        self._machine = machine
        self._random = Random(f"{machine.scenario.seed}/{run_id}")
        self._address = [b"executor-%d" % number]
        self._secret = ids.run_secret(KEY, run_id)
        self._started_ms = machine.clock.wall_ms()
        self._started_mono_ms = self._saved_mono_ms = machine.clock.mono_ms()
        words = jobs.decode(definition).payload.argv
        self._fails = self._random.randrange(100) < int(words[2])
        duration_ms = max(1, round(int(words[1]) * self._random.uniform(0.5, 1.5)))
        machine.executors[self._address[0]] = self
        machine.see(TaskStarted(run_id))
        self._hello()
        if duration_ms > HELLO_INTERVAL_MS:
            machine.agenda.after(HELLO_INTERVAL_MS, self._hello)
        if self._random.random() < machine.scenario.executor_crash and not machine.calm:
            machine.agenda.after(self._random.randrange(duration_ms + 2000), self.crash)
        machine.agenda.after(duration_ms, self._finish)

    def crash(self) -> None:
        """The process is gone; its lock is free."""
        if self.phase is Phase.FREE:
            return
        self._machine.say("executor", f"of {self.run_id} is gone")
        self._let_go()
        self._machine.agenda.after(self._random.randrange(5, 2000), self._machine.launcher.notice_gone(self.run_id))

    def hear(self, message: run.ToExecutor) -> None:
        match message:
            case run.Recorded():
                self.recorded = True
                self._let_go()
            case run.HelloAnswer(cancel=str()):
                self.cancel()
            case _:
                pass

    def cancel(self) -> None:
        """The task is ended within its grace."""
        if self.phase is Phase.HELD:
            grace_ms = self._random.randrange(3000)
            self._machine.agenda.after(grace_ms, lambda: self._save(Status.ERROR, Reason.CANCELLED))

    def _hello(self) -> None:
        if self.phase is Phase.HELD:
            self._machine.from_executor(self._address, run.Hello(self.run_id, self._secret, 1))

    def _finish(self) -> None:
        if self._fails:
            self._save(Status.ERROR, self._random.choice(FAILURES))
        else:
            self._save(Status.OK, None)

    def _save(self, status: Status, reason: Reason | None) -> None:
        if self.phase is not Phase.HELD:
            return
        machine = self._machine
        made = Outcome(
            run=self.run_id,
            status=status,
            reason=reason,
            message="" if status is Status.OK else "it failed",
            started_ms=self._started_ms,
            ended_ms=machine.clock.wall_ms(),
            duration_ms=machine.clock.mono_ms() - self._started_mono_ms,
        )
        self.outcome = outcome.encode(made)
        self.phase = Phase.SAVED
        self._saved_mono_ms = machine.clock.mono_ms()
        machine.see(TaskEnded(self.run_id, str(status), machine.clock.wall_ms()))
        self._report()

    def _report(self) -> None:
        machine = self._machine
        if self.phase is not Phase.SAVED or self.outcome is None:
            return
        if machine.clock.mono_ms() - self._saved_mono_ms > OUTCOME_HOLD_MS:
            self._let_go()
            machine.agenda.after(1, machine.launcher.notice_gone(self.run_id))
            return
        machine.from_executor(self._address, run.Report(self.run_id, self._secret, self.outcome))
        again_ms = OUTCOME_RESEND_MS if machine.scheduler.is_up else ABSENT_RETRY_MS
        machine.agenda.after(again_ms, self._report)

    def _let_go(self) -> None:
        self.phase = Phase.FREE
        self._machine.executors.pop(self._address[0], None)
