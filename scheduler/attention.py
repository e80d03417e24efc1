"""Whether deadlines were looked after without a gap: what came due while nobody looked was missed."""

from cronward.schedule.catch_up import Pace, Queue

GAP_MS = 10_000
"""The loop looks at least once a second; a machine that is too busy for that has missed nothing yet."""
STEP_MS = 2_000
"""Wall and monotonic clock apart by more than this: somebody set the clock, or the machine was suspended."""


class Attention:
    """Remembers the last look. A gap is a gap, whatever made it: a start, a pause, a full disk, no launcher yet, a
    process that was stopped, a suspended machine, a clock that was set forward."""

    def __init__(self) -> None:
        self._looked: tuple[int, int] | None = None
        self._missed_before_ms = 0
        self.queue = Queue(Pace(0, 0, 0), 0)
        """Places of the jobs that missed slots in the last gap."""

    def look(self, wall_ms: int, mono_ms: int, pace: Pace, grace_ms: int) -> int:
        """Called whenever deadlines are looked after. By how much the clock was set since the last time, 0 if not."""
        before, self._looked = self._looked, (wall_ms, mono_ms)
        passed_ms, step_ms = GAP_MS + 1, 0
        if before is not None:
            passed_ms = wall_ms - before[0]
            step_ms = passed_ms - (mono_ms - before[1])
        if passed_ms > GAP_MS or step_ms > STEP_MS:
            self._missed_before_ms = wall_ms - grace_ms
            self.queue = Queue(pace, wall_ms)
        elif step_ms < -STEP_MS:
            # What lay before the gap by the clock that was ahead has, by the right one, not come yet.
            self._missed_before_ms = min(self._missed_before_ms, wall_ms - grace_ms)
            self.queue = Queue(pace, wall_ms)
        return step_ms if abs(step_ms) > STEP_MS else 0

    def was_missed(self, due_ms: int) -> bool:
        """Whether a deadline that has come did so while nobody looked. A little late is not missed."""
        return due_ms < self._missed_before_ms
