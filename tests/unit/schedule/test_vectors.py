"""Next slots that are fixed for good: the answers that jobs brought over from elsewhere rely on, with our rules for
clock changes and day fields applied. A change here changes when people's work runs."""

import pytest

from tests.unit.schedule.listing import dates, utc

NEW_YORK = "America/New_York"
LORD_HOWE = "Australia/Lord_Howe"

CLOCK_CHANGES = [
    # expression, zone, after, slots in UTC
    ("30 2 * * *", NEW_YORK, "2026-03-07T00:00", ["03-07T07:30", "03-08T07:00", "03-09T06:30", "03-10T06:30"]),
    ("0 2 * * *", NEW_YORK, "2026-03-07T12:00", ["03-08T07:00", "03-09T06:00", "03-10T06:00"]),
    ("0 3 * * *", NEW_YORK, "2026-03-07T12:00", ["03-08T07:00", "03-09T07:00"]),
    ("*/30 * * * *", NEW_YORK, "2026-03-08T06:20", ["03-08T06:30", "03-08T07:00", "03-08T07:30", "03-08T08:00"]),
    ("30 1 * * *", NEW_YORK, "2026-10-31T12:00", ["11-01T05:30", "11-02T06:30"]),
    (
        "*/30 * * * *",
        NEW_YORK,
        "2026-11-01T04:50",
        ["11-01T05:00", "11-01T05:30", "11-01T06:00", "11-01T06:30", "11-01T07:00", "11-01T07:30"],
    ),
    ("0 * * * *", NEW_YORK, "2026-11-01T03:30", ["11-01T04:00", "11-01T05:00", "11-01T06:00", "11-01T07:00"]),
    ("15 2 * * *", LORD_HOWE, "2026-10-03T00:00", ["10-03T15:30", "10-04T15:15", "10-05T15:15"]),
    ("45 1 * * *", LORD_HOWE, "2026-04-04T00:00", ["04-04T14:45", "04-05T15:15"]),
]


@pytest.mark.parametrize(("expr", "tz", "after", "slots"), CLOCK_CHANGES)
def test_slots_around_clock_changes(expr: str, tz: str, after: str, slots: list[str]) -> None:
    assert utc(expr, tz, after, len(slots)) == slots


def test_day_of_month_and_weekday_are_alternatives_unless_one_is_starred() -> None:
    assert dates("0 0 13 * 5", "2026-01-01", 5) == [
        "2026-01-02",
        "2026-01-09",
        "2026-01-13",
        "2026-01-16",
        "2026-01-23",
    ]


@pytest.mark.parametrize(
    ("expr", "days"),
    [
        ("0 0 L * *", ["2026-01-31", "2026-02-28", "2026-03-31"]),
        ("0 0 LW * *", ["2026-01-30", "2026-02-27", "2026-03-31"]),
        ("0 0 15W * *", ["2026-01-15", "2026-02-16", "2026-03-16"]),
        ("0 0 * * 5L", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 0 * * L5", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 0 * * FRIL", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("0 0 * * 1#2", ["2026-01-12", "2026-02-09", "2026-03-09"]),
        ("0 0 * * SUN#L", ["2026-01-25", "2026-02-22", "2026-03-29"]),
        ("0 0 ? * MON", ["2026-01-05", "2026-01-12", "2026-01-19"]),
        ("0 0 * * 0", ["2026-01-04", "2026-01-11", "2026-01-18"]),
        ("0 0 * * 7", ["2026-01-04", "2026-01-11", "2026-01-18"]),
        ("0 0 1,LW * *", ["2026-01-30", "2026-02-01", "2026-02-27"]),
        ("0 0 * * 1,5#2", ["2026-01-05", "2026-01-09", "2026-01-12"]),
        ("0 0 0 1 1 ? 2028-2030", ["2028-01-01", "2029-01-01", "2030-01-01"]),
        ("0 0 1 MAR,jan *", ["2026-03-01", "2027-01-01", "2027-03-01"]),
    ],
)
def test_day_forms(expr: str, days: list[str]) -> None:
    assert dates(expr, "2026-01-01", 3) == days


@pytest.mark.parametrize(
    ("alias", "slots"),
    [
        ("@hourly", ["05-06T08:00", "05-06T09:00"]),
        ("@daily", ["05-07T00:00", "05-08T00:00"]),
        ("@midnight", ["05-07T00:00", "05-08T00:00"]),
        ("@weekly", ["05-10T00:00", "05-17T00:00"]),
        ("@monthly", ["06-01T00:00", "07-01T00:00"]),
        ("@yearly", ["01-01T00:00", "01-01T00:00"]),
        ("@ANNUALLY", ["01-01T00:00", "01-01T00:00"]),
    ],
)
def test_aliases_are_exact_times(alias: str, slots: list[str]) -> None:
    assert utc(alias, "UTC", "2026-05-06T07:08", 2) == slots
