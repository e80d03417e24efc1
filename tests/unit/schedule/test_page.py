"""The examples of docs/schedules.md are what the code says."""

import re
from pathlib import Path

from cronward.protocol.errors import InvalidRequest
from cronward.schedule import grammar
from cronward.schedule.fields import HOUR, expand, placed_by
from cronward.schedule.planner import preview
from cronward.schedule.zones import zone
from tests.unit.schedule.listing import ms, settled

PAGE = (Path(__file__).parents[3] / "docs" / "schedules.md").read_text()


def test_slots() -> None:
    (block,) = re.findall(r"```slots\n(.*?)```", PAGE, re.DOTALL)
    examples = block.strip().split("\n\n")
    assert len(examples) >= 7
    for example in examples:
        heading, *lines = example.splitlines()
        expr, tz, after = heading.split(" | ")
        slots = preview(settled(expr, tz, after), job_id="job-1", after_ms=ms(after), count=len(lines))
        assert [f"  {slot.local}  {slot.note or ''}".rstrip() for slot in slots] == lines


def test_refusals() -> None:
    messages = []
    for refuse in (lambda: expand(HOUR, "24", placed_by("")), lambda: zone("europe/berlin")):
        try:
            refuse()
        except InvalidRequest as error:
            messages.append(error.message)
    assert len(messages) == 2
    assert all(message in PAGE for message in messages)


def test_aliases() -> None:
    assert all(f"`{alias}`" in PAGE for alias in grammar.ALIASES)
