"""Durations and instants as people write and read them."""

from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.cli.times import duration, relative, short_stamp, stamp
from cronward.schedule.at import parse_at
from cronward.schedule.duration import DURATION_MAX_MS, interval, parse_duration_ms
from tests.unit.cli.samples import NOW_MS

AUCKLAND = ZoneInfo("Pacific/Auckland")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("30", 30),
        ("1.5", 2),
        ("10m", 600_000),
        (" 10M ", 600_000),
        ("1h30m", 5_400_000),
        ("2h0.5m", 7_230_000),
        (".5s", 500),
        ("1d", 86_400_000),
        ("250ms", 250),
        ("0", 0),
    ],
)
def test_a_duration_is_read(text: str, ms: int) -> None:
    assert parse_duration_ms(text) == ms


@pytest.mark.parametrize(
    "text", ["", "m", "-5m", "+5m", "5 m", "1h30", "10x", "1h-30m", "5m!", "9e9", "1_0s", "∞", "٣m"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert parse_duration_ms(text) is None


def test_a_duration_beyond_every_date_is_refused() -> None:
    assert parse_duration_ms(str(DURATION_MAX_MS)) == DURATION_MAX_MS
    assert parse_duration_ms(str(DURATION_MAX_MS + 1000)) is None


@given(st.integers(min_value=1, max_value=10**12))
def test_an_interval_is_written_as_it_is_read(ms: int) -> None:
    assert parse_duration_ms(interval(ms)) == ms


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_200, "1.2 s"),
        (42_000, "42 s"),
        (180_000, "3 min"),
        (7_200_000, "2 h"),
        (9_000_000, "2 h 30 min"),
        (187_200_000, "2 d 4 h"),
    ],
)
def test_a_duration_is_told_in_at_most_two_units(ms: int, text: str) -> None:
    assert duration(ms) == text


@pytest.mark.parametrize(
    ("distance_ms", "text"),
    [(0, "now"), (240_000, "in 4 min"), (-12_000, "12 s ago"), (7_200_000, "in 2 h"), (-259_200_000, "3 d ago")],
)
def test_an_instant_is_told_from_now(distance_ms: int, text: str) -> None:
    assert relative(NOW_MS + distance_ms, NOW_MS) == text


def test_every_time_of_day_carries_its_zone() -> None:
    assert stamp(NOW_MS, AUCKLAND) == "Wed 2026-12-02 17:03:35 +13:00 NZDT"
    assert short_stamp(NOW_MS, NOW_MS, AUCKLAND) == "17:03 NZDT"
    assert short_stamp(NOW_MS + 86_400_000, NOW_MS, AUCKLAND) == "12-03 17:03 NZDT"
    assert short_stamp(NOW_MS + 400 * 86_400_000, NOW_MS, AUCKLAND).startswith("2028-01-06")


def test_a_zone_without_a_name_shows_its_offset() -> None:
    assert short_stamp(NOW_MS, NOW_MS, ZoneInfo("America/Sao_Paulo")) == "01:03 -03:00"


@pytest.mark.parametrize("at_ms", [8_640_000_000_000_000, 253_402_300_799_000, -62_135_596_800_000])
def test_instants_beyond_the_calendar_are_shown_all_the_same(at_ms: int) -> None:
    for text in (stamp(at_ms, AUCKLAND), short_stamp(at_ms, NOW_MS, AUCKLAND)):
        assert text.endswith("Z")
    assert relative(at_ms, NOW_MS) != ""


def test_long_ago_zones_had_seconds_and_years_had_four_digits() -> None:
    """Local mean time: +00:53:28 in Berlin, before 1893."""
    assert stamp(parse_at("1890-01-01T00:00Z"), ZoneInfo("Europe/Berlin")) == "Wed 1890-01-01 00:53:28 +00:53:28 LMT"
    assert stamp(parse_at("0042-01-01T00:00Z"), ZoneInfo("UTC")) == "Wed 0042-01-01 00:00:00 +00:00 UTC"
