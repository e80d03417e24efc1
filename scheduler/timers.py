"""What happens by the monotonic clock rather than because something came."""

from cronward.scheduler import cancellation, launcher_desk, notices, review
from cronward.scheduler.ports import Ports
from cronward.scheduler.retention import Retention
from cronward.scheduler.world import Turn

TICK_MS = 1_000
SURROUNDINGS_MS = 60_000
SEEN_MS = 120_000
PRUNE_MS = 3_600_000


class Timers:
    """Remembers when each was last done."""

    def __init__(self, mono_ms: int) -> None:
        self._last = dict.fromkeys((TICK_MS, cancellation.REPEAT_MS, SURROUNDINGS_MS, SEEN_MS, PRUNE_MS), mono_ms)

    def run(self, turn: Turn, retention: Retention, ports: Ports) -> None:
        """Everything whose time has come."""
        if not self._is_due(turn.mono_ms, TICK_MS):
            return
        turn.effects.tick = True
        if turn.world.link.is_overdue(turn.mono_ms):
            launcher_desk.close_epoch(turn, "the launcher is silent or did not answer a launch")
        notices.send_due(turn)
        retention.sweep(turn)
        review.step(turn)
        if self._is_due(turn.mono_ms, cancellation.REPEAT_MS):
            cancellation.repeat(turn)
        if self._is_due(turn.mono_ms, SURROUNDINGS_MS):
            ports.ensure_own()
            review.check_zones(turn)
        if self._is_due(turn.mono_ms, SEEN_MS):
            turn.store.run("touch_life", instance=turn.world.instance, now_ms=turn.now_ms)
        if self._is_due(turn.mono_ms, PRUNE_MS):
            retention.prune(turn)
            turn.world.review.look_again()

    def _is_due(self, mono_ms: int, interval_ms: int) -> bool:
        if mono_ms - self._last[interval_ms] < interval_ms:
            return False
        self._last[interval_ms] = mono_ms
        return True
