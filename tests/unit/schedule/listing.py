"""Slots as texts, so that a test reads like the table that it comes from."""

import datetime as dt

from cronward.protocol.job import Cron
from cronward.schedule.planner import next_slot_ms, preview, settle

EXACT = 0


def ms(iso: str) -> int:
    """Epoch ms of an ISO 8601 text; UTC where it has no offset."""
    instant = dt.datetime.fromisoformat(iso)
    return int((instant if instant.tzinfo else instant.replace(tzinfo=dt.UTC)).timestamp() * 1000)


def settled(expr: str, tz: str, after: str, job_id: str = "job-1", stagger_ms: int | None = EXACT) -> Cron:
    schedule = settle(Cron(expr, tz, stagger_ms), job_id=job_id, now_ms=ms(after), default_tz="UTC")
    assert isinstance(schedule, Cron)
    return schedule


def local(expr: str, tz: str, after: str, count: int = 3, job_id: str = "job-1") -> list[str]:
    """The next slots in the job's zone, such as 2026-03-08T03:00-04:00."""
    slots = preview(settled(expr, tz, after, job_id), job_id=job_id, after_ms=ms(after), count=count)
    return [
        slot.local.replace(":00-", "-").replace(":00+", "+") if slot.local[17:19] == "00" else slot.local
        for slot in slots
    ]


def utc(expr: str, tz: str, after: str, count: int = 3, job_id: str = "job-1") -> list[str]:
    """The next slots in UTC, such as 03-08T07:00."""
    schedule = settled(expr, tz, after, job_id)
    found, at_ms = [], ms(after)
    for _ in range(count):
        slot_ms = next_slot_ms(schedule, job_id=job_id, after_ms=at_ms)
        assert slot_ms is not None
        assert slot_ms > at_ms
        at_ms = slot_ms
        found.append(dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC).strftime("%m-%dT%H:%M"))
    return found


def dates(expr: str, after: str, count: int = 3) -> list[str]:
    """The next days in UTC."""
    return [text[:10] for text in local(expr, "UTC", after, count)]


def notes(expr: str, tz: str, after: str, count: int = 3) -> list[str | None]:
    """What the preview says about the next slots."""
    return [slot.note for slot in preview(settled(expr, tz, after), job_id="job-1", after_ms=ms(after), count=count)]
