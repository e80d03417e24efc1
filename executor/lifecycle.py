"""One run, from the hand-over to its recorded outcome, as a total table of phases and events.

    SETUP ──► RUNNING ──────────────► DRAINING ──► CLEANUP ──► REPORTING ──► released
      └─────────┴──────► STOPPING ──────┘                         ▲
      └── could not be started ───────────────────────────────────┘

A deadline is armed only in phases that expect it, so the table calls it impossible elsewhere.
"""

import os
import signal
from collections.abc import Callable

import msgspec

from cronward.executor import intent_file, verdict
from cronward.executor.command import Launchpad
from cronward.executor.deadlines import Deadlines
from cronward.executor.loop import Loop
from cronward.executor.outcome_file import OutcomeFile
from cronward.executor.phases import Event, Phase
from cronward.executor.process_tree import Exit
from cronward.executor.reporter import Reporter
from cronward.executor.steps import SetupFailed
from cronward.executor.task import Task
from cronward.executor.verdict import Verdict
from cronward.protocol import failpoints, log, outcome, rundir
from cronward.protocol.clock import Clock
from cronward.protocol.outcome import Outcome, Stream
from cronward.protocol.pair import HandOver
from cronward.protocol.run import OUTCOME_HOLD_MS, OUTCOME_RESEND_MS

DRAIN_MS = 1000
"""Output that comes later than this after the leader's end is lost."""

SWEEP_MS = 20
"""Between two KILLs."""


class Released(msgspec.Struct, frozen=True):
    """How a run left: its lock is closed. `clean` False: something of it still lives."""

    run: str
    acknowledged: bool
    clean: bool


class Tools(msgspec.Struct, frozen=True):
    """What an executor lends to each of its runs."""

    loop: Loop
    clock: Clock
    reporter: Reporter
    launchpad: Launchpad


class Run:
    """The run that this executor holds. It is over when `released` is set."""

    def __init__(self, hand_over: HandOver, lock_fd: int, tools: Tools) -> None:
        self.id = hand_over.run
        self.phase = Phase.SETUP
        self.released: Released | None = None
        self.deadlines: Deadlines[Event] = Deadlines()
        self._secret = hand_over.secret
        self._directory = hand_over.directory
        self._lock_fd = lock_fd
        self._tools = tools
        self._verdict: Verdict | None = None
        self._why_cancelled = ""
        self._exit: Exit | None = None
        self._ladder_begun = False
        self._left = 0
        self._unended = False
        self._begun = False
        self._started_wall_ms = 0
        self._started_ms = 0
        self._ended_ms: int | None = None

    def handle(self, event: Event) -> None:
        """Applies one event as the table says."""
        TABLE[self.phase][event](self)

    def cancel(self, why: str) -> None:
        """Asks for the end of the run. The first reason counts."""
        self._why_cancelled = self._why_cancelled or why
        self.handle(Event.CANCEL)

    # SETUP

    def begin(self) -> None:
        """Greets the scheduler, whose answer nobody waits for, and starts the task."""
        self._tools.reporter.take(self.id, self._secret)
        try:
            self._intent, self._command = intent_file.read(self._directory, self.id)
            failpoints.hit("executor.before_start")
            self._note_start()
            started = self._tools.launchpad.start(self._command, self.id, self._intent.path)
        except SetupFailed as failed:
            self._verdict = verdict.of_setup(failed)
            self._finish(None)
            return
        self._task = Task(started, self._tools.loop, self._tools.clock, self.handle)
        if self._task.in_setup:
            self._arm(Event.SETUP_DUE, self._intent.limits.setup_ms)
        else:
            self._enter_running()

    def _setup_reply(self) -> None:
        try:
            self._task.check_setup()
        except SetupFailed as failed:
            self._enter_stopping(verdict.of_setup(failed), grace_ms=0)
        else:
            self.deadlines.clear(Event.SETUP_DUE)
            self._note_start()
            self._enter_running()
        # A leader that was quick has ended already, and what said so came while its end meant nothing yet.
        self._child_ended()

    def _setup_due(self) -> None:
        self._stop_setup(verdict.setup_timed_out(self._intent.limits.setup_ms))

    def _cancel_setup(self) -> None:
        self._stop_setup(verdict.cancelled(self._why_cancelled))

    def _terminate_setup(self) -> None:
        self._stop_setup(verdict.terminated())

    def _stop_setup(self, why: Verdict) -> None:
        """Without grace, since what runs is our own code; unless the command is found to have begun."""
        self._task.read_setup()
        if self.phase is Phase.RUNNING:
            self._stop(why)
        elif self.phase is Phase.SETUP:
            self._task.close_setup()
            self._enter_stopping(why, grace_ms=0)
            self._child_ended()

    # RUNNING

    def _note_start(self) -> None:
        """Before the spawn, which returns only when the command is under way."""
        self._started_wall_ms = self._tools.clock.wall_ms()
        self._started_ms = self._tools.clock.mono_ms()

    def _enter_running(self) -> None:
        self.phase = Phase.RUNNING
        self._begun = True
        failpoints.hit("executor.during_task")
        limits = self._intent.limits
        self._task.last_output_ms = self._started_ms
        self._arm(Event.TIMEOUT_DUE, limits.timeout_ms)
        self._arm(Event.SILENCE_DUE, limits.no_output_ms)
        self._task.capture(self._directory, (rundir.STDOUT, rundir.STDERR), limits.output_max_bytes)

    def _output(self) -> None:
        self._tools.reporter.progress("running", *self._task.written)
        if self._may_not_be_truncated():
            self._stop(verdict.output_limit(self._intent.limits.output_max_bytes))
            # It stands even if the task turns out to have ended by itself.
            self._late_output()

    def _silence_due(self) -> None:
        """Looked at when it is due, instead of moved with each byte."""
        limit_ms = self._intent.limits.no_output_ms
        due_ms = self._task.last_output_ms + limit_ms
        if self._tools.clock.mono_ms() < due_ms:
            self.deadlines.set(Event.SILENCE_DUE, due_ms)
        else:
            self._stop(verdict.silent(limit_ms))

    def _timeout_due(self) -> None:
        self._stop(verdict.timed_out(self._intent.limits.timeout_ms))

    def _cancel(self) -> None:
        self._stop(verdict.cancelled(self._why_cancelled))

    def _terminate(self) -> None:
        self._stop(verdict.terminated())

    def _child_ended(self) -> None:
        self._exit = self._task.tree.leader_exit()
        if self._exit is not None:
            self._enter_draining()
        else:
            self._task.tree.reap_orphans()

    # STOPPING

    def _stop(self, why: Verdict) -> None:
        """Ends the task, unless it has just ended by itself: the outcome is what happened."""
        self._child_ended()
        if self.phase is Phase.RUNNING:
            self._enter_stopping(why, self._intent.limits.grace_ms)

    def _enter_stopping(self, why: Verdict, grace_ms: int) -> None:
        self.phase = Phase.STOPPING
        self._verdict = why
        self.deadlines.clear_all()
        if self._intent.limits.cleanup_ms:
            self._arm(Event.CLEANUP_DUE, grace_ms + self._intent.limits.cleanup_ms)
        self._begin_ladder(grace_ms)

    def _begin_ladder(self, grace_ms: int) -> None:
        self._ladder_begun = True
        if grace_ms == 0:
            self._kill()
            return
        # CONT, since what is stopped would not hear TERM.
        self._task.tree.send(signal.SIGTERM, signal.SIGCONT)
        self._arm(Event.GRACE_DUE, grace_ms)

    def _kill(self) -> None:
        """Again and again, since something may have forked between a look and its signal."""
        self._task.tree.send(signal.SIGKILL)
        self._arm(Event.SWEEP_DUE, SWEEP_MS)

    # DRAINING

    def _enter_draining(self) -> None:
        self.phase = Phase.DRAINING
        self._ended_ms = self._tools.clock.mono_ms()
        self.deadlines.clear(Event.TIMEOUT_DUE, Event.SILENCE_DUE, Event.CLEANUP_DUE)
        if self._task.outputs_over:
            self._enter_cleanup()
        else:
            self._arm(Event.DRAIN_DUE, DRAIN_MS)

    def _late_output(self) -> None:
        if self._verdict is None and self._may_not_be_truncated():
            self._verdict = verdict.output_limit(self._intent.limits.output_max_bytes)

    def _may_not_be_truncated(self) -> bool:
        return self._command.output_limit_action == "fail" and self._task.over_limit

    # CLEANUP

    def _enter_cleanup(self) -> None:
        self.phase = Phase.CLEANUP
        self.deadlines.clear(Event.DRAIN_DUE)
        self._task.close_outputs()
        if self._task.tree.settle():
            self._finish(self._task)
        elif self._intent.leave_children and not self._ladder_begun:
            self._left = self._task.tree.leave()
            self._finish(self._task)
        else:
            self._arm(Event.CLEANUP_DUE, self._intent.limits.cleanup_ms)
            if not self._ladder_begun:
                self._begin_ladder(self._intent.limits.grace_ms)

    def _settle(self) -> None:
        if self._task.tree.settle():
            self._finish(self._task)

    def _sweep(self) -> None:
        self._settle()
        if self.phase is Phase.CLEANUP:
            self._kill()

    def _give_up(self) -> None:
        """Something does not end even by KILL: uninterruptible, or of a user whom we may not signal."""
        self._unended = True
        self._left = len(self._task.tree.living())
        log.error("executor.unended", f"{self._left} processes of a run do not end", run=self.id, left=self._left)
        self._task.close_outputs()
        self._finish(self._task)

    # REPORTING

    def _finish(self, task: Task | None) -> None:
        """The task is over, or never began."""
        self.phase = Phase.REPORTING
        self.deadlines.clear_all()
        os.pwrite(self._lock_fd, rundir.TASK_OVER, 0)
        failpoints.hit("executor.after_task")
        self._file = OutcomeFile(self._directory, outcome.encode(self._describe(task)))
        self._save()
        self._report()

    def _describe(self, task: Task | None) -> Outcome:
        leader = self._exit or Exit(None, None)
        how = self._verdict or verdict.of_exit(leader)
        now_ms = self._tools.clock.mono_ms()
        ended_ms = self._ended_ms or now_ms
        stdout, stderr = task.streams if task else (Stream(), Stream())
        return Outcome(
            run=self.id,
            status=how.status,
            reason=how.reason,
            message=how.message,
            started_ms=self._started_wall_ms if self._begun else None,
            ended_ms=self._tools.clock.wall_ms() - (now_ms - ended_ms),
            duration_ms=ended_ms - self._started_ms if self._begun else 0,
            exit_code=leader.code if self._begun else how.exit_code,
            signal=leader.signal if self._begun else None,
            stdout=stdout,
            stderr=stderr,
            left=self._left,
            unended=self._unended,
            cpu_ms=task.tree.cpu_ms if task else 0,
            max_rss_kib=task.tree.max_rss_kib if task else 0,
        )

    def _save(self) -> None:
        try:
            self._file.save()
        except OSError as error:
            log.error("executor.outcome_not_saved", f"the outcome cannot be saved: {error}", run=self.id)
            return
        failpoints.hit("executor.after_outcome_saved")
        self._arm(Event.HOLD_DUE, OUTCOME_HOLD_MS)

    def _report(self) -> None:
        self._tools.reporter.report(self._file.outcome, saved=self._file.saved)
        self._arm(Event.RESEND_DUE, OUTCOME_RESEND_MS)

    def _resend(self) -> None:
        """Nobody acknowledged it: it may have to wait here for long, so it goes to the disk first."""
        if not self._file.saved:
            self._save()
        if self._file.saved:
            try:
                self._file.sync()
            except OSError as error:
                log.error("executor.outcome_not_synced", f"the outcome cannot be synced: {error}", run=self.id)
        self._report()

    def _reap_left(self) -> None:
        """What was left alive on purpose ends some time."""
        if self._left:
            self._task.tree.reap_orphans()

    def _recorded(self) -> None:
        failpoints.hit("executor.after_ack")
        self._release(acknowledged=True)

    def _hold_due(self) -> None:
        """From now on the launcher reports it from the directory."""
        log.warning("executor.not_acknowledged", "the outcome was not acknowledged in time", run=self.id)
        self._release(acknowledged=False)

    def _release(self, *, acknowledged: bool) -> None:
        self.deadlines.clear_all()
        self._tools.reporter.drop()
        os.close(self._lock_fd)
        self.released = Released(self.id, acknowledged, clean=self._left == 0 and not self._unended)

    def _arm(self, event: Event, after_ms: int) -> None:
        """Sets a deadline; 0 means that there is none."""
        if after_ms:
            self.deadlines.set(event, self._tools.clock.mono_ms() + after_ms)

    def _ignore(self) -> None:
        """May come, and changes nothing in this phase."""

    def _impossible(self) -> None:
        raise RuntimeError(f"an event that cannot happen in phase {self.phase.value}")


Handler = Callable[[Run], None]


def _table() -> dict[Phase, dict[Event, Handler]]:
    """Rows are events, columns are phases in the order of their declaration."""
    ignore, never = Run._ignore, Run._impossible
    rows: dict[Event, tuple[Handler, Handler, Handler, Handler, Handler, Handler]] = {
        Event.SETUP_REPLY: (Run._setup_reply, never, never, never, never, never),
        Event.CHILD_ENDED: (ignore, Run._child_ended, Run._child_ended, ignore, Run._settle, Run._reap_left),
        Event.OUTPUT: (never, Run._output, ignore, Run._late_output, never, never),
        Event.OUTPUT_OVER: (never, ignore, ignore, Run._enter_cleanup, never, never),
        Event.CANCEL: (Run._cancel_setup, Run._cancel, ignore, ignore, ignore, ignore),
        Event.TERMINATE: (Run._terminate_setup, Run._terminate, ignore, ignore, ignore, ignore),
        Event.CONNECTED: (ignore, ignore, ignore, ignore, ignore, Run._report),
        Event.RECORDED: (ignore, ignore, ignore, ignore, ignore, Run._recorded),
        Event.SETUP_DUE: (Run._setup_due, never, never, never, never, never),
        Event.TIMEOUT_DUE: (never, Run._timeout_due, never, never, never, never),
        Event.SILENCE_DUE: (never, Run._silence_due, never, never, never, never),
        Event.GRACE_DUE: (never, never, Run._kill, Run._kill, Run._kill, never),
        Event.SWEEP_DUE: (never, never, Run._kill, Run._kill, Run._sweep, never),
        Event.DRAIN_DUE: (never, never, never, Run._enter_cleanup, never, never),
        Event.CLEANUP_DUE: (never, never, Run._give_up, never, Run._give_up, never),
        Event.RESEND_DUE: (never, never, never, never, never, Run._resend),
        Event.HOLD_DUE: (never, never, never, never, never, Run._hold_due),
    }
    return {phase: {event: row[column] for event, row in rows.items()} for column, phase in enumerate(Phase)}


TABLE = _table()
