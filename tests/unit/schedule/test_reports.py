"""Bugs that users of other schedulers reported, in the grammar and the calendar, with the right result.
The number in a name is the report's."""

import time

import pytest

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import Cron
from cronward.schedule.around import previous_slot_ms
from cronward.schedule.planner import settle
from tests.unit.schedule.listing import dates, local, ms, utc


def test_b001_a_spelled_out_range_is_no_star() -> None:
    assert dates("0 9 1-31 * 1", "2026-05-01", 4) == ["2026-05-01", "2026-05-02", "2026-05-03", "2026-05-04"]


def test_b002_a_stepped_star_joins_with_the_weekday() -> None:
    assert dates("0 9 */2 * 1", "2026-05-01", 3) == ["2026-05-11", "2026-05-25", "2026-06-01"]


def test_b004_a_day_that_never_comes_leaves_the_weekday() -> None:
    assert utc("48 14 31 jun sun", "UTC", "2026-01-01", 3) == ["06-07T14:48", "06-14T14:48", "06-21T14:48"]


def test_b005_seven_is_sunday() -> None:
    assert dates("0 0 * * 7", "2026-01-01", 2) == ["2026-01-04", "2026-01-11"]
    assert dates("0 0 * * WED-7", "2026-01-04", 6) == [
        "2026-01-07",
        "2026-01-08",
        "2026-01-09",
        "2026-01-10",
        "2026-01-11",
        "2026-01-14",
    ]
    assert dates("0 0 * * 0,7", "2026-01-01", 3) == ["2026-01-04", "2026-01-11", "2026-01-18"]


def test_b007_weekdays_are_not_shifted() -> None:
    assert local("0 9 * * 1-5", "UTC", "2026-01-02T09:00", 1) == ["2026-01-05T09:00+00:00"]


def test_b008_last_days_of_successive_months() -> None:
    days = ["2015-10-31", "2015-11-30", "2015-12-31", "2016-01-31", "2016-02-29"]
    assert dates("0 0 L * *", "2015-09-30", 5) == days


@pytest.mark.parametrize("spelling", ["5L", "L5", "FriL", "LFRI", "fri#L"])
def test_b010_the_last_friday_is_not_every_friday(spelling: str) -> None:
    assert dates(f"0 0 * * {spelling}", "2024-07-11", 2) == ["2024-07-26", "2024-08-30"]


def test_b011_a_fifth_weekday_may_be_the_last_of_its_month() -> None:
    assert utc("41 11 * * fri#5", "UTC", "2023-09-01", 2) == ["09-29T11:41", "12-29T11:41"]
    assert dates("41 11 * * thu#4", "2023-09-01", 1) == ["2023-09-28"]


def test_b013_b014_days_that_do_not_exist() -> None:
    for expr in ("0 0 30 2 *", "0 0 31 2,4,6 *"):
        began = time.process_time()
        with pytest.raises(InvalidRequest, match="never fire"):
            settle(Cron(expr), job_id="job-1", now_ms=ms("2026-01-01"), default_tz="UTC")
        assert time.process_time() - began < 0.5
    assert dates("0 0 31 4,5 *", "2026-01-01", 1) == ["2026-05-31"]


def test_b016_leap_days_go_on_after_they_ran() -> None:
    assert local("0 9 29 2 *", "UTC", "2016-02-29T09:00", 1) == ["2020-02-29T09:00+00:00"]
    assert local("15 22 29 2 *", "UTC", "2020-02-29T22:15", 1) == ["2024-02-29T22:15+00:00"]


@pytest.mark.parametrize(
    ("expr", "before", "slot"),
    [
        ("15 22 29 2 *", "2024-02-29T00:00", "2020-02-29T22:15"),
        ("15 22 29 2 *", "2024-02-29T22:15", "2020-02-29T22:15"),
        ("15 22 29 2 *", "2023-02-28T12:00", "2020-02-29T22:15"),
        ("15 22 29 2 *", "2104-02-29T00:00", "2096-02-29T22:15"),
        ("15 22 * * *", "2024-02-29T00:00", "2024-02-28T22:15"),
        ("15 22 * * *", "2024-03-01T00:00", "2024-02-29T22:15"),
        ("15 22 31 * *", "2024-02-29T00:00", "2024-01-31T22:15"),
    ],
)
def test_b017_looking_back_from_a_leap_day(expr: str, before: str, slot: str) -> None:
    rule = Cron(expr, "UTC", 0)
    assert previous_slot_ms(rule, job_id="job-1", before_ms=ms(before)) == ms(slot)


def test_b019_the_long_gap_around_2100() -> None:
    assert dates("0 0 29 2 *", "2096-03-01", 1) == ["2104-02-29"]
    assert dates("0 0 29 2 */7", "2088-03-01", 1) == ["2128-02-29"]  # 29 February on a Sunday: forty years
    assert dates("0 0 0 1 1 * 2099", "2026-01-01", 1) == ["2099-01-01"]


def test_b020_the_first_of_six_fields_is_seconds() -> None:
    assert utc("0 0 12 * * *", "UTC", "2026-01-01T13:00", 2) == ["01-02T12:00", "01-03T12:00"]
    assert local("15,45 0 12 * * *", "UTC", "2026-01-01", 2) == [
        "2026-01-01T12:00:15+00:00",
        "2026-01-01T12:00:45+00:00",
    ]


def test_b022_an_equal_range_is_one_value() -> None:
    assert utc("5-5 * * * *", "UTC", "2026-01-01", 3) == ["01-01T00:05", "01-01T01:05", "01-01T02:05"]


def test_b023_a_stepped_range_over_new_year() -> None:
    assert dates("0 0 1 11-2/3 *", "2026-01-01", 3) == ["2026-02-01", "2026-11-01", "2027-02-01"]


def test_b025_a_step_from_the_last_value() -> None:
    assert utc("59/15 * * * *", "UTC", "2026-01-01", 2) == ["01-01T00:59", "01-01T01:59"]
    assert utc("0 23/6 * * *", "UTC", "2026-01-01", 2) == ["01-01T23:00", "01-02T23:00"]


def test_b028_hashed_steps_go_on_evenly_over_the_hour() -> None:
    for job_id in (*(f"job-{number}" for number in range(50)), "lml-scamper"):
        slots = utc("H/5 * * * *", "UTC", "2026-01-01T00:30", 24, job_id)
        assert {int(slot[-1]) % 5 for slot in slots} == {int(slots[0][-1]) % 5}, job_id
        assert slots[12][-2:] == slots[0][-2:], job_id


def test_b029_a_hashed_step_wider_than_its_window_is_refused_for_every_id() -> None:
    for number in range(300):
        with pytest.raises(InvalidRequest, match="larger than the range"):
            settle(Cron("H(1-5)/10 * * * *"), job_id=f"job-{number}", now_ms=0, default_tz="UTC")


def test_b031_an_alias_is_exact_for_every_job() -> None:
    assert {utc("@midnight", "UTC", "2026-01-01", 1, f"job-{number}")[0] for number in range(50)} == {"01-02T00:00"}


@pytest.mark.parametrize(("expr", "tz"), [("@daily", "UTC"), ("* * * * * *", "UTC"), ("0 0 * * 5#2", "UTC")])
def test_b032_what_is_accepted_is_planned(expr: str, tz: str) -> None:
    assert utc(expr, tz, "2026-01-01", 2)


@pytest.mark.parametrize("minute_of_stored_time", [0, 4])
def test_b073_b076_far_and_late_times(minute_of_stored_time: int) -> None:
    assert local("0 4 1 1 *", "UTC", "2026-01-02", 1) == ["2027-01-01T04:00+00:00"]
    after = f"2038-01-19T03:1{minute_of_stored_time}"
    assert local("* * * * *", "UTC", after, 1) == [f"2038-01-19T03:1{minute_of_stored_time + 1}+00:00"]
