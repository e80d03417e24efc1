"""Zones: exact names, helpful refusals, never UTC in silence."""

import itertools
import os
import subprocess
import sys
import zoneinfo

import pytest

from cronward.protocol.errors import InvalidRequest
from cronward.protocol.job import Cron
from cronward.schedule.planner import Unplannable, next_slot_ms, settle
from cronward.schedule.spans import spans
from cronward.schedule.zones import zone


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("europe/berlin", "write Europe/Berlin"),
        ('"Europe/Berlin"', "write Europe/Berlin, without quotes"),
        (" Europe/Berlin ", "write Europe/Berlin"),
        ("Europe/Berlyn", "did you mean Europe/Berlin"),
        ("PST", "America/Los_Angeles"),
        ("BST", "Europe/London"),
        ("CEST", "Europe/Berlin"),
        ("GMT+5", "Etc/GMT-5"),
        ("UTC-03:00", "Etc/GMT+3"),
        ("+02:00", "Etc/GMT-2"),
        ("utc", "write UTC"),
        ("", ""),
        ("  ", ""),
        ("Mars/Base", ""),
        ("America", ""),
        ("localtime", ""),
        ("Factory", ""),
        ("posix/Europe/Berlin", ""),
        ("right/Europe/Berlin", ""),
        ("../../etc/passwd", ""),
        ("/etc/localtime", ""),
        ("Europe/Berlin\0", ""),
        ("Z" * 10_000, ""),
    ],
)
def test_b059_b061_unknown_names_are_refused_with_a_hint(name: str, hint: str) -> None:
    for schedule, default_tz in ((Cron("0 9 * * *", name), "UTC"), (Cron("0 9 * * *"), name)):
        with pytest.raises(InvalidRequest) as caught:
            settle(schedule, job_id="job-1", now_ms=0, default_tz=default_tz)
        assert caught.value.field == "schedule.tz"
        assert hint in str(caught.value.details["hint"] or "")
        assert len(caught.value.message) < 500


def test_b055_the_default_zone_is_written_into_the_schedule() -> None:
    schedule = settle(Cron("0 13 * * *"), job_id="job-1", now_ms=0, default_tz="Pacific/Auckland")
    assert schedule == Cron("0 13 * * *", "Pacific/Auckland", 0)


def test_every_zone_of_the_database_is_accepted_and_has_spans() -> None:
    names = [name for name in zoneinfo.available_timezones() if name not in ("Factory", "localtime")]
    assert len(names) > 400
    for name in names:
        line = spans(zone(name).key, 1_772_000_000)
        spans_found = [next(line) for _ in range(4)]
        assert spans_found[0].start_s <= 1_772_000_000 < spans_found[0].end_s
        assert all(earlier.end_s == later.start_s for earlier, later in itertools.pairwise(spans_found))


def test_the_package_of_zone_data_serves_where_the_system_has_none() -> None:
    code = (
        "import zoneinfo; assert zoneinfo.TZPATH == (), zoneinfo.TZPATH;"
        "from tests.unit.schedule.listing import local; print(local('0 10 * * *', 'Asia/Tokyo', '2026-01-01', 1))"
    )
    environment = {**os.environ, "PYTHONTZPATH": "", "PYTHONPATH": os.getcwd()}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout == "['2026-01-01T10:00+09:00']\n"


def test_b061_a_stored_zone_that_is_gone_is_no_utc() -> None:
    with pytest.raises(Unplannable, match=r"schedule\.tz: is no known time zone \(got 'Mars/Base'\)"):
        next_slot_ms(Cron("0 9 * * *", "Mars/Base", 0), job_id="job-1", after_ms=0)
    with pytest.raises(Unplannable, match="no time zone"):
        next_slot_ms(Cron("0 9 * * *"), job_id="job-1", after_ms=0)
