"""What the grammar reads, and how it refuses the rest: by field, value, allowed range and hint."""

import time

import pytest

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import Cron
from cronward.schedule import grammar
from cronward.schedule.planner import settle
from tests.unit.schedule.listing import ms


def refused(expr: str) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        settle(Cron(expr, "UTC"), job_id="job-1", now_ms=ms("2026-01-01"), default_tz="UTC")
    assert caught.value.field == "schedule.expr"
    assert caught.value.details["allowed"]
    return caught.value


@pytest.mark.parametrize(
    ("expr", "field", "value", "allowed", "hint"),
    [
        ("0 0 * * 8", "weekday", "8", "0-7 or SUN-SAT", "Sunday"),
        ("60 * * * *", "minute", "60", "0-59", "minute 0"),
        ("0 24 * * *", "hour", "24", "0-23", "hour 0"),
        ("0 0 0 * *", "day-of-month", "0", "1-31", "seconds"),
        ("0 0 32 * *", "day-of-month", "32", "1-31", ""),
        ("0 0 32W * *", "day-of-month", "32W", "1-31", ""),
        ("0 0 1 13 *", "month", "13", "1-12 or JAN-DEC", ""),
        ("0 0 1 FOO *", "month", "FOO", "1-12 or JAN-DEC", ""),
        ("60 0 0 * * *", "second", "60", "0-59", "second 0"),
        ("0 0 0 1 1 * 1969", "year", "1969", "1970-2099", ""),
        ("0 0 0 1 1 * 2030-2026", "year", "2030-2026", "1970-2099", "years"),
        ("0 0 1 1 * 2027", "weekday", "2027", "0-7", "seven fields"),
        ("1,,2 * * * *", "minute", "", "0-59", "comma"),
        ("1- * * * *", "minute", "1-", "0-59", "both sides"),
        ("-1 * * * *", "minute", "-1", "0-59", "both sides"),
        ("1-2-3 * * * *", "minute", "1-2-3", "0-59", ""),
        ("1/ * * * *", "minute", "1/", "steps 1-60", ""),
        ("*/0 * * * *", "minute", "*/0", "steps 1-60", ""),
        ("*/70 * * * *", "minute", "*/70", "steps 1-60", ""),
        ("0 */25 * * *", "hour", "*/25", "steps 1-24", ""),
        ("0 0 * * */8", "weekday", "*/8", "steps 1-7", ""),
        ("R * * * *", "minute", "R", "0-59", "random"),
        ("0 0 13 * +5", "weekday", "+5", "0-7", "'+'"),
        ("35 * 1-L/8 8 *", "day-of-month", "1-L/8", "1-31", "L stands alone"),
        ("35 * 0-l/8 8 *", "day-of-month", "0-L/8", "1-31", ""),
        ("0 0 L-3 * *", "day-of-month", "L-3", "1-31", "L stands alone"),
        ("0 0 W * *", "day-of-month", "W", "1-31", "15W"),
        ("0 0 * * L", "weekday", "L", "0-7", "6L"),
        ("0 0 * * 5#6", "weekday", "5#6", "weekday#1 to weekday#5", ""),
        ("0 0 5#2 * *", "day-of-month", "5#2", "1-31", "weekday field"),
        ("H(1-5)/10 * * * *", "minute", "H(1-5)/10", "steps 1-5", ""),
        ("H(9-5) * * * *", "minute", "H(9-5)", "0-59", "rising"),
        ("0 0 0 1 1 * H", "year", "H", "1970-2099", "not in the year"),
        ("0 0 * * FRYDAY", "weekday", "FRYDAY", "0-7 or SUN-SAT", ""),
        ("99999999999999999999 * * * *", "minute", "99999999999999999999", "0-59", ""),
    ],
)
def test_refusals_name_field_value_range_and_hint(expr: str, field: str, value: str, allowed: str, hint: str) -> None:
    error = refused(expr)
    assert error.message.startswith(f"schedule.expr: {field}: ")
    assert f"got {value!r}" in error.message
    assert f"allowed: {allowed}" in error.message
    assert hint in str(error.details["hint"] or "")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ("", "has 0 fields"),
        ("   ", "has 0 fields"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * * *", "has 8 fields"),
        ("@reboot", "systemd"),
        ("@every 5m", "kind 'every'"),
        ("@fortnightly", "is no known alias"),
        ("０ 0 * * *", "not plain text"),
        ("0 0 * * ſUN", "not plain text"),
    ],
)
def test_refusals_of_the_whole_expression(expr: str, text: str) -> None:
    assert text in refused(expr).message


@pytest.mark.parametrize(
    "expr", ["0 0 30 2 *", "0 0 31 2,4,6 *", "0 0 31 2 */7", "0 0 0 1 1 * 2025", "0 0 0 29 2 * 2027"]
)
def test_what_can_never_fire_is_refused_quickly(expr: str) -> None:
    began = time.process_time()
    assert "would never fire" in refused(expr).message
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize("hostile", ["*" * 40_000, "1," * 20_000, "0 " * 20_000, "H(" * 20_000, "@" + "d" * 40_000])
def test_forty_kilobytes_are_refused_at_once(hostile: str) -> None:
    began = time.process_time()
    error = refused(hostile)
    assert time.process_time() - began < 0.05
    assert "at most 200 characters" in error.message
    assert len(error.message) < 400


def minutes(field: str) -> tuple[int, ...]:
    return grammar.parse(f"{field} * * * *", "job-1").minutes


def hours(field: str) -> tuple[int, ...]:
    return grammar.parse(f"0 {field} * * *", "job-1").hours


def weekdays(field: str) -> tuple[int, ...]:
    return grammar.parse(f"0 0 * * {field}", "job-1").day_rule.weekdays


def test_ranges_and_steps_mean_what_they_say() -> None:
    assert minutes("5-5") == (5,)
    assert minutes("59/15") == (59,)
    assert minutes("45/15") == (45,)
    assert minutes("5/20") == (5, 25, 45)
    assert minutes("*/25") == (0, 25, 50)
    assert minutes("10-30/10,3") == (3, 10, 20, 30)
    assert hours("23/6") == (23,)


def test_ranges_wrap_around_in_the_order_in_which_they_are_written() -> None:
    assert hours("22-2") == (0, 1, 2, 22, 23)
    assert hours("22-4/3") == (1, 4, 22)
    assert grammar.parse("0 0 1 11-2/3 *", "job-1").day_rule.months == (2, 11)
    assert grammar.parse("0 0 30-2 * *", "job-1").day_rule.days == (1, 2, 30, 31)


def test_sunday_is_zero_and_seven_alone_and_in_ranges() -> None:
    assert weekdays("0") == weekdays("7") == weekdays("SUN") == weekdays("0,7") == weekdays("7-7") == (0,)
    assert weekdays("WED-7") == weekdays("wed-sun") == (0, 3, 4, 5, 6)
    assert weekdays("5-7/2") == (0, 5)
    assert weekdays("7-2") == (0, 1, 2)
    assert weekdays("0-7") == weekdays("1-7") == (0, 1, 2, 3, 4, 5, 6)
    assert weekdays("6-1") == (0, 1, 6)


def test_six_fields_begin_and_seven_end_as_documented() -> None:
    six = grammar.parse("5 10 12 * * *", "job-1")
    assert (six.seconds, six.minutes, six.hours) == ((5,), (10,), (12,))
    seven = grammar.parse("5 10 12 1 2 ? 2030/60", "job-1")
    assert seven.day_rule.years == (2030, 2090)


def test_spaces_and_case_do_not_matter() -> None:
    assert grammar.parse("  0\t9  *  *   mon-fri\n", "job-1") == grammar.parse("0 9 * * 1-5", "job-1")


def test_only_h_depends_on_the_job() -> None:
    assert [expr for expr in ("H * * * *", "0 h(1-5) * * *", "0 0 H/7 * *") if not grammar.uses_hash(expr)] == []
    assert [expr for expr in ("0 0 * * THU", "0 0 * MAR *", "@hourly", "@monthly") if grammar.uses_hash(expr)] == []


def test_many_nearest_weekdays_are_refused() -> None:
    """Each takes a search of its own, and each search over years takes milliseconds."""
    assert grammar.parse("0 0 1W,5W,10W,15W,20W,LW * *", "job-1").day_rule.nearest == (1, 5, 10, 15, 20, 31)
    with pytest.raises(InvalidRequest, match=r"day-of-month: W is used for 7 days .*allowed: W for at most 6 days"):
        grammar.parse("0 0 1W,2W,3W,4W,5W,6W,7W * *", "job-1")
