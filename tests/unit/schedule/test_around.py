"""The slots around an instant."""

import pytest

from cronward.protocol.job import Cron
from cronward.schedule import around
from cronward.schedule.at import parse_at


@pytest.mark.parametrize(
    ("expr", "before", "found"),
    [
        ("0 0 1 1 *", "2026-06-01", "2026-01-01"),
        ("0 0 29 2 *", "2104-01-01", "2096-02-29"),
        ("0 0 0 29 2 * 2016", "2043-01-01", "2016-02-29"),
        ("0 0 0 1 1 * 1970", "2069-01-01", "1970-01-01"),
        ("0 0 0 1 1 * 2090", "2043-01-01", None),
    ],
)
def test_the_slot_before_is_found_across_decades(expr: str, before: str, found: str | None) -> None:
    slot_ms = around.previous_slot_ms(Cron(expr, "UTC", 0), job_id="j", before_ms=parse_at(before))
    assert slot_ms == (None if found is None else parse_at(found))
