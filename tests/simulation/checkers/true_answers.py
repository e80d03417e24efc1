"""`why` tells the truth: what has a run is told by that run, what has none is explained by something that happened."""

from collections.abc import Callable
from typing import NamedTuple

from cronward.protocol import job as jobs
from cronward.protocol.why import Cause
from cronward.schedule import around
from cronward.scheduler.attention import GAP_MS
from tests.simulation.support.machine import Broken
from tests.simulation.support.seen import Changed, Edit, Explained, Job, LifeEnded, Run, Seen, TurnBegan

BY_STATE = {
    "queued": {Cause.WAITING},
    "active": {Cause.RUNNING},
    "ok": {Cause.RAN},
    "error": {Cause.RAN, Cause.LAUNCH_LOST},
    "skipped": {Cause.SKIPPED, Cause.LAUNCH_LOST, Cause.RAN},
}
OF_A_RUN = {Cause.RAN, Cause.RUNNING, Cause.SKIPPED, Cause.LAUNCH_LOST}
OFF = {Cause.DISABLED, Cause.AUTO_DISABLED, Cause.USED_UP}
MISSED = {Cause.CONSUMED, Cause.BACKOFF, Cause.DEFERRED, Cause.DROPPED, Cause.DOWN, Cause.PAUSED, Cause.COVERED}
ON = MISSED | {Cause.WAITING, Cause.FLAGGED, Cause.FORGOTTEN}
"""What can be said of a past slot without a run while the job was enabled."""


class Setting(NamedTuple):
    """What was in force from a moment on."""

    from_ms: int
    schedule: jobs.Schedule
    enabled: bool


class TrueAnswers:
    """Remembers runs, definitions, lives and switches, and holds each answer against them."""

    def __init__(self) -> None:
        self._runs: dict[str, Run] = {}
        self._by_slot: dict[tuple[str, int], str] = {}
        self._over_ms: dict[str, int] = {}
        self._settings: dict[str, list[Setting]] = {}
        self._paused_ms: set[int] = set()
        self._began_ms: set[int] = set()
        self._is_down = True
        self._wall_ms = 0
        self._set_back_ms = 0
        """The latest time that the clock was set back from: up to it, times have two meanings."""

    def see(self, event: Seen) -> None:
        match event:
            case TurnBegan(wall_ms=wall_ms):
                if wall_ms < self._wall_ms:
                    self._set_back_ms = max(self._set_back_ms, self._wall_ms)
                if self._is_down:
                    self._began_ms.add(wall_ms)
                self._wall_ms, self._is_down = wall_ms, False
            case LifeEnded():
                self._is_down = True
            case Changed(Run() as run, None):
                del self._runs[run.run_id], self._over_ms[run.run_id]
                self._by_slot.pop((run.job_id, run.slot_ms), None)
            case Changed(_, row):
                self._remember(row)
            case Explained():
                self._judge(event)

    def _remember(self, row: object) -> None:
        """A row as it was stored."""
        match row:
            case Run(run_id=run_id):
                self._runs[run_id] = row
                if not row.is_live:
                    self._over_ms.setdefault(run_id, self._wall_ms)
                if row.kind == "scheduled":
                    self._by_slot[row.job_id, row.slot_ms] = run_id
            case Job(job_id=job_id):
                definition = jobs.decode(row.definition)
                setting = Setting(self._wall_ms, definition.schedule, definition.enabled)
                self._settings.setdefault(job_id, []).append(setting)
            case Edit(job_id=None, action="paused" | "drained"):
                self._paused_ms.add(self._wall_ms)

    def _judge(self, said: Explained) -> None:
        run = self._runs.get(self._by_slot.get((said.job_id, said.at_ms), ""))
        if run is not None:
            if said.run_id != run.run_id or said.cause not in BY_STATE[run.state]:
                raise Broken(f"{run} was told as {said}")
            return
        named = self._runs.get(said.run_id or "")
        if named is not None and named.job_id != said.job_id:
            raise Broken(f"{said} names a run of another job")
        if said.cause in OF_A_RUN and (named is None or named.kind != "manual" or named.slot_ms != said.at_ms):
            raise Broken(f"there is no such run: {said}")
        if said.cause is Cause.UNKNOWN:
            raise Broken(f"nothing explains it: {said}")
        judge = EXPLAINED.get(said.cause)
        if judge is not None and not judge(self, said):
            raise Broken(f"this is not so: {said}")
        if said.at_ms > self._set_back_ms:
            self._judge_setting(said)

    def _judge_setting(self, said: Explained) -> None:
        """Held against whether the job was on, where the clock leaves no doubt."""
        settings = self._settings[said.job_id]
        then = next((one for one in reversed(settings) if one.from_ms < said.at_ms), None)
        unchanged = then is not None and all(one.schedule == then.schedule for one in settings)
        if then is None:
            fits = said.cause in (Cause.NOT_YET_CREATED, Cause.EDITED)
        elif said.cause in (Cause.NOT_A_SLOT, Cause.SWALLOWED, Cause.EDITED):
            is_slot = around.is_slot(then.schedule, job_id=said.job_id, at_ms=said.at_ms)
            fits = not is_slot and (said.cause is not Cause.EDITED or not unchanged)
        elif not then.enabled:
            fits = said.cause in OFF
        elif said.at_ms > said.now_ms:
            fits = said.cause in (Cause.COMING, Cause.BACKOFF, Cause.FLAGGED, Cause.FAR_AHEAD, Cause.DEFERRED)
        else:
            fits = said.cause in ON | OF_A_RUN
        if not fits:
            raise Broken(f"by {then} this is not so: {said}")

    def down(self, said: Explained) -> bool:
        """A life began at the end of it."""
        return said.until_ms in self._began_ms

    def paused(self, said: Explained) -> bool:
        return said.since_ms in self._paused_ms

    def consumed(self, said: Explained) -> bool:
        """By a run that was there when the slot was looked at."""
        run = self._runs.get(said.run_id or "")
        if run is None or said.at_ms <= self._set_back_ms:
            return True
        return run.requested_ms - GAP_MS <= said.at_ms <= self._over_ms.get(run.run_id, said.at_ms)

    def backoff(self, said: Explained) -> bool:
        """After a run that failed."""
        run = self._runs.get(said.run_id or "")
        return run is None or run.state == "error"

    def covered(self, said: Explained) -> bool:
        """By a run that was asked for later."""
        run = self._runs.get(said.run_id or "")
        return run is not None and (said.at_ms <= run.requested_ms or said.at_ms <= self._set_back_ms)

    def coming(self, said: Explained) -> bool:
        return said.at_ms > said.now_ms


EXPLAINED: dict[Cause, Callable[[TrueAnswers, Explained], bool]] = {
    Cause.DOWN: TrueAnswers.down,
    Cause.PAUSED: TrueAnswers.paused,
    Cause.CONSUMED: TrueAnswers.consumed,
    Cause.BACKOFF: TrueAnswers.backoff,
    Cause.COVERED: TrueAnswers.covered,
    Cause.COMING: TrueAnswers.coming,
}
