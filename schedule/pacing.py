"""Pacing: a run may propose when to look next, within bounds that the job sets.

No payload of this release proposes anything; the bounds are checked and stored for those that will.
"""

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import At, Pacing, Schedule
from cronward.schedule.duration import parse_duration_ms
from cronward.schedule.refusal import refusal


def settle(pacing: Pacing | None, schedule: Schedule) -> Pacing | None:
    """The stored form, bounds in ms. Raises InvalidRequest."""
    if pacing is None:
        return None
    if isinstance(schedule, At):
        raise InvalidRequest("pacing", "needs a schedule of kind 'every' or 'cron'")
    min_ms, max_ms = _bound_ms("pacing.min", pacing.min), _bound_ms("pacing.max", pacing.max)
    if min_ms is None and max_ms is None:
        raise InvalidRequest("pacing", "needs at least one of min and max")
    if min_ms is not None and max_ms is not None and min_ms > max_ms:
        raise InvalidRequest("pacing.min", f"must not exceed max (got {min_ms} and {max_ms} ms)")
    return Pacing(min_ms, max_ms)


def next_check_ms(pacing: Pacing, ended_ms: int, proposed_ms: int) -> int:
    """When to look next, if the run that ended at `ended_ms` proposed a delay of `proposed_ms`. `pacing` is settled."""
    delay_ms = max(proposed_ms, _bound_ms("pacing.min", pacing.min) or 0)
    max_ms = _bound_ms("pacing.max", pacing.max)
    return ended_ms + (delay_ms if max_ms is None else min(delay_ms, max_ms))


def _bound_ms(field: str, bound: int | str | None) -> int | None:
    if bound is None:
        return None
    bound_ms = parse_duration_ms(str(bound))
    if not bound_ms:
        raise refusal(field, "is no positive duration", value=str(bound), allowed="such as 30s, 10m or 1h30m")
    return bound_ms
