"""What holds for every expression, zone and instant, checked against a reading of the rules second by second."""

import datetime as dt
import random
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from cronward.protocol.errors import InvalidRequest
from cronward.schedule import grammar
from cronward.schedule.cron import CronRule, cron_rule
from tests.unit.schedule.expressions import ZONES, changes, expression, instant_s

MINUTE_S = 60
HORIZON_S = 3 * 86_400

cases = st.tuples(st.randoms(use_true_random=False), st.sampled_from(sorted(ZONES)))


def names(expression: grammar.Expression, wall: dt.datetime) -> bool:
    """Whether a wall time matches, from the values alone (plain days and weekdays only)."""
    rule = expression.day_rule
    day, weekday = wall.day in rule.days, wall.isoweekday() % 7 in rule.weekdays
    return (
        wall.minute in expression.minutes
        and wall.hour in expression.hours
        and wall.month in rule.months
        and ((day and weekday) if rule.both else (day or weekday))
    )


def expected_s(rule: CronRule, parsed: grammar.Expression, after_s: int) -> int | None:
    """The next slot within the horizon, by trying every minute of real time, and every minute of every gap."""
    zone = ZoneInfo(rule.tz)
    gap_ends = set()
    for earlier, later in changes(rule.tz, after_s - HORIZON_S, after_s + 2 * HORIZON_S):
        gap = range(earlier.wall_end_s, later.wall_start_s, MINUTE_S)
        if any(names(parsed, dt.datetime.fromtimestamp(wall_s, dt.UTC)) for wall_s in gap):
            gap_ends.add(later.start_s)
    for instant in range(-(-(after_s + 1) // MINUTE_S) * MINUTE_S, after_s + HORIZON_S, MINUTE_S):
        wall = dt.datetime.fromtimestamp(instant, zone)
        if rule.fixed_time and instant in gap_ends:
            return instant
        if names(parsed, wall) and not (rule.fixed_time and wall.fold):
            return instant
    return None


@settings(max_examples=120, deadline=None)
@given(cases)
def test_the_next_slot_is_the_first_that_the_rules_name(case: tuple[random.Random, str]) -> None:
    chance, tz = case
    expr = expression(chance)
    rule, parsed = cron_rule(expr, tz, "job-1"), grammar.parse(expr, "job-1")
    after_s = instant_s(chance, tz)
    expected = expected_s(rule, parsed, after_s)
    found = rule.next_s(after_s)
    if expected is None:
        assert found is None or found >= after_s + HORIZON_S - MINUTE_S
    else:
        assert found == expected


@settings(max_examples=200, deadline=None)
@given(cases, st.integers(0, 100_000))
def test_slots_rise_strictly_and_do_not_depend_on_where_one_starts(
    case: tuple[random.Random, str], later_s: int
) -> None:
    chance, tz = case
    rule = cron_rule(expression(chance), tz, "job-1")
    after_s = instant_s(chance, tz)
    first = rule.next_s(after_s)
    assert first is not None
    assert first > after_s
    # Asked from anywhere before it, the answer is the same slot.
    assert rule.next_s(max(after_s, first - 1 - later_s)) == first
    second = rule.next_s(first)
    assert second is not None
    assert second > first


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789*?/,-#@+ HLWRabcdefjmnostuMON().\n", max_size=60) | st.text(max_size=220))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = read_or_refused(text)
    if isinstance(found, InvalidRequest):
        assert found.field == "schedule.expr"
        assert found.details["allowed"]
    else:
        assert found.minutes
        assert set(found.minutes) <= set(range(60))
        assert set(found.hours) <= set(range(24))
        assert set(found.day_rule.weekdays) <= set(range(7))


def read_or_refused(text: str) -> grammar.Expression | InvalidRequest:
    try:
        return grammar.parse(text, "job-1")
    except InvalidRequest as error:
        return error
