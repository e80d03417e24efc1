"""docs/crash-semantics.md says what the code does: points and windows, cells left out, JSON keys, options."""

import re
from pathlib import Path

from cronward.cli.torture import torture
from cronward.cli.torture_report import Report
from cronward.cli.torture_windows import WITHOUT_POINT, Action, Cell, Victims, impossible
from cronward.protocol.failpoints import WINDOWS

PAGE = (Path(__file__).parents[3] / "docs" / "crash-semantics.md").read_text()


def test_the_table_has_every_point_in_its_window() -> None:
    rows = re.findall(r"^\| (\d+) \| (?:`([a-z_.]+)`|(none)[^|]*) \|", PAGE, re.MULTILINE)
    assert {point: window for window, point, _ in rows if point} == WINDOWS
    assert {window for window, _, none in rows if none} == set(WITHOUT_POINT)


def test_cells_that_are_not_played_are_named_with_their_reasons() -> None:
    cells = [Cell(point, action, victims) for point in WINDOWS for action in Action for victims in Victims]
    reasons = {reason for cell in cells if (reason := impossible(cell))}
    assert reasons
    assert all(reason in PAGE for reason in reasons)


def test_options_and_keys_are_those_of_the_command() -> None:
    options = {option for parameter in torture.params for option in parameter.opts}
    assert options == set(re.findall(r"^\| `(--[a-z]+)", PAGE, re.MULTILINE))
    listed = re.search(r"`--json` \| `([^`]+)`", PAGE)
    assert listed is not None
    assert set(listed[1].split(", ")) | {"findings"} <= set(Report.__struct_fields__)
