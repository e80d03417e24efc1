"""Reports about daylight saving and zones, and the odd changes that zones have really made."""

import os
import subprocess
import sys

import pytest

from cronward.protocol.job import Cron
from cronward.schedule import planner
from cronward.schedule.at import parse_at
from tests.unit.schedule.listing import local, notes, utc

NEW_YORK = "America/New_York"


def test_b035_a_time_that_a_coming_change_skips_or_repeats_is_accepted() -> None:
    slots = local("0 2 * * *", "Europe/Copenhagen", "2018-10-27T12:00", 3)
    assert slots == ["2018-10-28T02:00+02:00", "2018-10-29T02:00+01:00", "2018-10-30T02:00+01:00"]
    assert local("0 2 * * *", "Europe/Copenhagen", "2018-10-22T12:00", 1) == ["2018-10-23T02:00+02:00"]


def test_b037_a_shift_of_half_an_hour() -> None:
    slots = local("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00", 2)
    assert slots == ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]


def test_b038_planned_within_the_second_pass() -> None:
    assert local("*/15 * * * *", NEW_YORK, "2026-11-01T06:31", 2) == [
        "2026-11-01T01:45-05:00",
        "2026-11-01T02:00-05:00",
    ]
    assert local("45 1 * * *", NEW_YORK, "2026-11-01T06:31", 1) == ["2026-11-02T01:45-05:00"]
    assert local("45 1,2 * * *", NEW_YORK, "2026-11-01T06:31", 1) == ["2026-11-01T02:45-05:00"]


def test_b040_b041_no_extra_run_the_hour_before() -> None:
    assert local("0 0 1 * *", "Europe/Berlin", "2024-03-01T00:00", 2) == [
        "2024-04-01T00:00+02:00",
        "2024-05-01T00:00+02:00",
    ]
    assert local("0 8 * * 1", "Europe/Amsterdam", "2017-10-23T08:00", 2) == [
        "2017-10-30T08:00+01:00",
        "2017-11-06T08:00+01:00",
    ]


@pytest.mark.parametrize(
    ("tz", "after", "slots"),
    [
        ("America/Sao_Paulo", "2018-11-03T12:00", ["2018-11-04T01:00-02:00", "2018-11-05T00:00-02:00"]),
        ("Asia/Beirut", "2026-03-28T12:00", ["2026-03-29T01:00+03:00", "2026-03-30T00:00+03:00"]),
        ("America/Havana", "2026-03-07T12:00", ["2026-03-08T01:00-04:00", "2026-03-09T00:00-04:00"]),
    ],
)
def test_b043_clocks_that_jump_at_midnight(tz: str, after: str, slots: list[str]) -> None:
    assert local("0 0 * * *", tz, after, 2) == slots
    assert local("@daily", tz, after, 2) == slots


def test_b044_one_run_for_the_gap() -> None:
    assert local("0 2 * * *", NEW_YORK, "2019-03-10T06:59", 2) == ["2019-03-10T03:00-04:00", "2019-03-11T02:00-04:00"]
    assert local("0 2 * * *", NEW_YORK, "2019-03-10T07:01", 1) == ["2019-03-11T02:00-04:00"]
    assert local("0,15,30 2 * * *", NEW_YORK, "2019-03-10T06:59", 2) == [
        "2019-03-10T03:00-04:00",
        "2019-03-11T02:00-04:00",
    ]
    assert local("0 2,3 * * *", NEW_YORK, "2019-03-10T06:59", 2) == ["2019-03-10T03:00-04:00", "2019-03-11T02:00-04:00"]


def test_b046_b050_starred_jobs_keep_pace_through_the_repeated_hour() -> None:
    slots = utc("* * * * *", "Europe/London", "2025-10-26T00:30", 120)
    assert len(set(slots)) == 120
    assert slots[-1] == "10-26T02:30"
    for period in (5, 10, 60):
        expr = f"*/{period} * * * *" if period < 60 else "0 * * * *"
        found = utc(expr, "Europe/Paris", "2020-10-25T00:00", 3 * 60 // period)
        assert found[-1] == "10-25T03:00"


def test_b047_b049_the_zone_of_the_host_plays_no_part() -> None:
    code = (
        "from tests.unit.schedule.listing import utc;"
        "print(utc('30 1 * * *', 'UTC', '2022-10-30T00:00', 1), utc('0 * * * *', 'UTC', '2025-10-05T02:00', 2),"
        "utc('0 19 * * *', 'Europe/Paris', '2026-07-02T09:21', 1))"
    )
    expected = "['10-30T01:30'] ['10-05T03:00', '10-05T04:00'] ['07-02T17:00']\n"
    for tz in ("Europe/London", "Australia/Sydney", "Pacific/Apia"):
        environment = {**os.environ, "TZ": tz, "PYTHONPATH": os.getcwd()}
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
        )
        assert found.stdout == expected


def test_b052_strictly_rising_over_the_repeated_hour() -> None:
    slots = local("0,15,30,45 6-22 * * *", "Europe/Brussels", "2023-10-28T20:40", 2)
    assert slots == ["2023-10-28T22:45+02:00", "2023-10-29T06:00+01:00"]


def test_b064_the_hour_shown_is_the_hour_asked_for() -> None:
    for hour in range(24):
        (slot,) = local(f"0 {hour} * * *", "Asia/Yekaterinburg", "2026-06-01T12:00", 1)
        assert slot[11:] == f"{hour:02}:00+05:00"


def test_b065_a_starred_hour_gets_no_extra_run_at_the_gap() -> None:
    assert local("0 */2 * * *", NEW_YORK, "2026-03-08T04:30", 3) == [
        "2026-03-08T00:00-05:00",
        "2026-03-08T04:00-04:00",
        "2026-03-08T06:00-04:00",
    ]
    assert local("* 2 * * *", NEW_YORK, "2026-03-08T06:00", 1) == ["2026-03-09T02:00-04:00"]


def test_a_day_that_a_zone_leaves_out() -> None:
    assert local("0 9 * * *", "Pacific/Apia", "2011-12-29T12:00", 3) == [
        "2011-12-29T09:00-10:00",
        "2011-12-31T00:00+14:00",
        "2011-12-31T09:00+14:00",
    ]
    assert local("0 */6 * * *", "Pacific/Apia", "2011-12-30T03:00", 3) == [
        "2011-12-29T18:00-10:00",
        "2011-12-31T00:00+14:00",
        "2011-12-31T06:00+14:00",
    ]


def test_a_zone_that_changes_for_good() -> None:
    # Istanbul stayed on summer time in 2016; Pyongyang went half an hour forward in 2018, at 23:30.
    assert local("0 3 * * *", "Europe/Istanbul", "2016-10-29T12:00", 2) == [
        "2016-10-30T03:00+03:00",
        "2016-10-31T03:00+03:00",
    ]
    assert local("45 23 * * *", "Asia/Pyongyang", "2018-05-04T12:00", 2) == [
        "2018-05-05T00:00+09:00",
        "2018-05-05T23:45+09:00",
    ]


def test_a_two_hour_shift_and_summer_time_that_is_called_winter() -> None:
    assert local("30 1 * * *", "Antarctica/Troll", "2026-03-28T12:00", 2) == [
        "2026-03-29T03:00+02:00",
        "2026-03-30T01:30+02:00",
    ]
    assert local("30 1 * * *", "Europe/Dublin", "2026-10-24T12:00", 2) == [
        "2026-10-25T01:30+01:00",
        "2026-10-26T01:30+00:00",
    ]


def test_jobs_with_seconds_follow_the_same_rule() -> None:
    assert local("30 30 2 * * *", NEW_YORK, "2026-03-07T12:00", 2) == [
        "2026-03-08T03:00-04:00",
        "2026-03-09T02:30:30-04:00",
    ]
    assert local("0,30 59 1 * * *", NEW_YORK, "2026-11-01T05:00", 3) == [
        "2026-11-01T01:59-04:00",
        "2026-11-01T01:59:30-04:00",
        "2026-11-02T01:59-05:00",
    ]


def test_the_preview_says_what_a_change_did() -> None:
    assert notes("30 2 * * *", NEW_YORK, "2026-03-08T06:00", 2) == [
        "moved from 2026-03-08 02:30: the clocks go from 2026-03-08 02:00 to 2026-03-08 03:00",
        None,
    ]
    assert notes("30 1 * * *", NEW_YORK, "2026-11-01T05:00", 2) == [
        "2026-11-01 01:30 comes twice: runs the first time only",
        None,
    ]
    assert notes("30 * * * *", NEW_YORK, "2026-11-01T05:00", 3) == [
        "2026-11-01 01:30 comes twice: this is the first time",
        "2026-11-01 01:30 comes twice: this is the second time",
        None,
    ]
    assert notes("0 */2 * * *", NEW_YORK, "2026-03-08T06:00", 2) == [
        "2026-03-08 02:00 is dropped: the clocks go from 2026-03-08 02:00 to 2026-03-08 03:00",
        None,
    ]
    assert notes("0 9 * * *", NEW_YORK, "2026-03-08T06:00", 1) == [None]


def test_a_zone_without_summer_time_carries_a_warning() -> None:
    assert notes("0 9 * * *", "EST", "2026-06-01", 2) == [
        "EST never has daylight saving time; America/New_York follows the clocks there",
        None,
    ]


def test_a_gap_tells_how_many_times_it_takes() -> None:
    def first_note(expr: str, tz: str, after: str) -> str | None:
        slots = planner.preview(Cron(expr, tz, 0), job_id="j", after_ms=parse_at(after), count=1)
        return slots[0].note

    jump = "the clocks go from 2026-03-08 02:00 to 2026-03-08 03:00"
    assert first_note("0,30 2 * * *", "America/New_York", "2026-03-08T00:00Z") == (
        f"moved from 2026-03-08 02:00 (with 1 after it): {jump}"
    )
    assert first_note("*/15 * * * *", "America/New_York", "2026-03-08T06:45Z") == (
        f"2026-03-08 02:00 (with 3 after it) is dropped: {jump}"
    )
    assert (first_note("* * * * * *", "America/New_York", "2026-03-08T06:59:59Z") or "").startswith(
        "2026-03-08 02:00 (with 100 or more after it) is dropped"
    )
