"""Text for a terminal: made harmless, coloured where that helps, set in columns that fit."""

import os
import shutil
import sys
import unicodedata
from collections.abc import Mapping
from typing import NamedTuple

_COLOURS = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "bold": "1", "dim": "2"}
_RESET = "\x1b[0m"

STATUS_COLOURS = {
    "ok": "green",
    "error": "red",
    "skipped": "yellow",
    "active": "cyan",
    "running": "cyan",
    "queued": "blue",
    "flagged": "red",
    "disabled": "dim",
    "idle": "dim",
}


class Column(NamedTuple):
    """A column of a table. A `flexible` one gives way where the terminal is too narrow, down to its title's width."""

    title: str
    right: bool = False
    flexible: bool = False


class Cell(NamedTuple):
    """Text of one cell and its colour."""

    text: str
    colour: str = ""


def safe(text: str, *, keep: str = "") -> str:
    """`text` with everything that a terminal would act on (control, bidirectional, unassigned) written as an escape
    such as \\x1b. Characters in `keep` pass."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _escape(char) for char in text)


def _escape(char: str) -> str:
    return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char) or char.encode("unicode_escape").decode()


def use_colour(environ: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Only on a terminal that can, and never where NO_COLOR is set (no-color.org)."""
    return is_terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def paint(text: str, colour: str) -> str:
    """`text` in `colour` if standard output takes colours."""
    if not colour or not use_colour(os.environ, is_terminal=sys.stdout.isatty()):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}{_RESET}"


def terminal_width() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere and nothing is to be cut."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else None


def table(columns: list[Column], rows: list[list[Cell]], width: int | None) -> str:
    """The rows below their titles. Fits into `width` by cutting flexible columns, the widest first."""
    widths = [
        max(display_width(text) for text in (column.title, *(row[index].text for row in rows)))
        for index, column in enumerate(columns)
    ]
    if width is not None:
        widths = fit(widths, columns, width)
    lines = [_line([Cell(column.title, "bold") for column in columns], columns, widths)]
    lines += [_line(row, columns, widths) for row in rows]
    return "\n".join(lines)


_GAP = 2


def fit(widths: list[int], columns: list[Column], total: int) -> list[int]:
    """`widths` with flexible ones made smaller, one by one from the widest, until the sum fits or none can give."""
    fitted = list(widths)
    excess = sum(fitted) + _GAP * (len(fitted) - 1) - total
    while excess > 0:
        able = [
            index
            for index, column in enumerate(columns)
            if column.flexible and fitted[index] > display_width(column.title)
        ]
        if not able:
            break
        fitted[max(able, key=lambda index: fitted[index])] -= 1
        excess -= 1
    return fitted


def _line(cells: list[Cell], columns: list[Column], widths: list[int]) -> str:
    parts = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        text = shorten(cell.text, width)
        space = " " * (width - display_width(text))
        painted = paint(text, cell.colour)
        parts.append(space + painted if column.right else painted + space)
    return (" " * _GAP).join(parts).rstrip()


def display_width(text: str) -> int:
    """Columns that a terminal uses for `text`: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` columns; what is missing is marked by an ellipsis."""
    if display_width(text) <= width:
        return text
    kept, used = "", 0
    for char in text:
        used += _char_width(char)
        if used > width - 1:
            break
        kept += char
    return kept + "…"


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
