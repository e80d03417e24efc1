"""One-shots: the forms, the limits, and wall times in a zone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import DATE_MAX_MS, At
from cronward.schedule.at import PAST_GRACE_MS, at_in_zone, iso_utc, parse_at
from cronward.schedule.planner import next_slot_ms, preview, settle
from tests.unit.schedule.listing import ms

NOW = "2026-06-01T00:00:00"


def stored(text: str, now: str = NOW) -> str:
    schedule = settle(At(text), job_id="job-1", now_ms=ms(now), default_tz="Asia/Tokyo")
    assert isinstance(schedule, At)
    return schedule.at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1780315200000", "2026-06-01T12:00:00.000Z"),
        ("2026-06-02", "2026-06-02T00:00:00.000Z"),
        ("2026-06-01T10:00", "2026-06-01T10:00:00.000Z"),
        ("2026-06-01t10:00:30", "2026-06-01T10:00:30.000Z"),
        ("2026-06-01 10:00:30Z", "2026-06-01T10:00:30.000Z"),
        ("2026-06-01T10:00:00.25Z", "2026-06-01T10:00:00.250Z"),
        ("2026-06-01T10:00:00.123999Z", "2026-06-01T10:00:00.123Z"),
        ("2026-06-01T10:00:00+09:00", "2026-06-01T01:00:00.000Z"),
        ("2026-06-01T10:00:00+0900", "2026-06-01T01:00:00.000Z"),
        ("2026-06-01T10:00:00-03:30", "2026-06-01T13:30:00.000Z"),
        ("2026-06-01T24:00:00", "2026-06-02T00:00:00.000Z"),
        ("+002026-06-02", "2026-06-02T00:00:00.000Z"),
        ("2028-02-29", "2028-02-29T00:00:00.000Z"),
        (" 2026-06-02 ", "2026-06-02T00:00:00.000Z"),
    ],
)
def test_forms(text: str, at: str) -> None:
    assert stored(text) == at
    assert stored(at) == at


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no timestamp"),
        ("tomorrow", "no timestamp"),
        ("20m", "no timestamp"),
        ("-5", "no timestamp"),
        ("2026-6-1", "no timestamp"),
        ("2026-06-01T10", "no timestamp"),
        ("-000000-01-01", "no timestamp"),
        ("２０２６-06-01", "no timestamp"),
        ("2026-02-30", "calendar does not have"),
        ("2027-02-29", "calendar does not have"),
        ("2026-13-01", "calendar does not have"),
        ("2026-06-00", "calendar does not have"),
        ("2026-06-01T25:00", "no such time"),
        ("2026-06-01T24:00:01", "no such time"),
        ("2026-06-01T24:00:00.5", "no such time"),
        ("2026-06-01T10:60", "no such time"),
        ("2026-06-01T10:00:60Z", "no such time"),
        ("2026-06-01T10:00:00+24:00", "no such offset"),
        ("0", "out of range"),
        ("9" * 20, "out of range"),
        ("+999999-01-01", "out of range"),
        ("2026-05-31T23:58:59Z", "in the past: 61 seconds ago; it is now 2026-06-01T00:00:00.000Z"),
        ("2025-06-01", "in the past: 365 days ago"),
        ("-002026-06-01", "in the past"),
        ("2036-06-02", "too far ahead: 10 years"),
        ("+012026-06-01", "too far ahead"),
        ("x" * 40_000, "no timestamp"),
    ],
)
def test_refusals(text: str, problem: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        stored(text)
    assert caught.value.field == "schedule.at"
    assert problem in caught.value.message
    assert "allowed: " in caught.value.message
    assert len(caught.value.message) < 500


def test_b193_a_minute_late_is_still_due() -> None:
    assert stored("2026-05-31T23:59:00Z") == "2026-05-31T23:59:00.000Z"
    schedule = At("2026-05-31T23:59:00.000Z")
    assert next_slot_ms(schedule, job_id="job-1", after_ms=ms(NOW) - PAST_GRACE_MS - 1) == ms("2026-05-31T23:59")
    assert next_slot_ms(schedule, job_id="job-1", after_ms=ms(NOW)) is None


def test_the_only_slot_is_strictly_later() -> None:
    schedule = At("2026-06-01T10:00:00.250Z")
    at_ms = ms("2026-06-01T10:00:00.250")
    assert next_slot_ms(schedule, job_id="job-1", after_ms=at_ms - 1) == at_ms
    assert next_slot_ms(schedule, job_id="job-1", after_ms=at_ms) is None
    (slot,) = preview(schedule, job_id="job-1", after_ms=0, count=5)
    assert (slot.at_ms, slot.local) == (at_ms, "2026-06-01T10:00:00.250+00:00")


def test_b076_after_2038() -> None:
    assert stored("2039-01-01", now="2035-01-01") == "2039-01-01T00:00:00.000Z"


def test_b056_b058_wall_times_in_a_zone() -> None:
    assert at_in_zone("2027-03-23", "Asia/Shanghai") == "2027-03-22T16:00:00.000Z"
    assert at_in_zone("2026-11-01 01:30", "America/New_York") == "2026-11-01T05:30:00.000Z"
    assert at_in_zone("2026-06-01T10:00:00.250", "Asia/Tokyo") == "2026-06-01T01:00:00.250Z"
    assert at_in_zone("2026-12-31T24:00", "Asia/Tokyo") == "2026-12-31T15:00:00.000Z"
    with pytest.raises(InvalidRequest, match="does not exist in America/New_York"):
        at_in_zone("2026-03-08 02:30", "America/New_York")
    assert at_in_zone("2026-03-08 03:00", "America/New_York") == "2026-03-08T07:00:00.000Z"
    with pytest.raises(InvalidRequest, match="does not exist"):
        at_in_zone("2011-12-30", "Pacific/Apia")


def test_what_has_an_offset_means_the_same_in_every_zone() -> None:
    assert at_in_zone("2026-06-01T10:00+09:00", "America/New_York") == "2026-06-01T01:00:00.000Z"
    assert at_in_zone("1780315200000", "America/New_York") == "2026-06-01T12:00:00.000Z"
    with pytest.raises(InvalidRequest, match="time zone"):
        at_in_zone("2026-06-01", "Mars/Base")


@given(st.integers(1, DATE_MAX_MS))
def test_the_stored_form_reads_back_as_itself(at_ms: int) -> None:
    assert parse_at(iso_utc(at_ms)) == at_ms
    assert parse_at(str(at_ms)) == at_ms
