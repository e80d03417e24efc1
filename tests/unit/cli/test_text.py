"""Text that is safe to print, and tables that fit."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.cli.describe import job_table, job_text, run_table
from cronward.cli.text import Cell, Column, display_width, safe, shorten, table, use_colour
from cronward.protocol.job import Command, Cron, Every, Secret
from tests.unit.cli.samples import NOW_MS, job, run

COLUMNS = [Column("NAME", flexible=True), Column("N", right=True)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ü 漢 <script>alert(1)</script>", "plain ü 漢 <script>alert(1)</script>"),
        ("\x1b[31mred\x1b]0;title\x07", "\\x1b[31mred\\x1b]0;title\\x07"),
        ("a\0b\rc\nd\te", "a\\x00b\\rc\\nd\\te"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\x9b31m", "\\x9b31m"),
    ],
)
def test_what_a_terminal_would_act_on_is_escaped(text: str, shown: str) -> None:
    """B160, B161: names and output can hold anything."""
    assert safe(text) == shown


@given(st.text())
def test_safe_text_is_printable_and_printable_text_is_untouched(text: str) -> None:
    assert safe(text).isprintable()
    if text.isprintable():
        assert safe(text) == text


def test_lines_may_be_kept() -> None:
    assert safe("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\x1b"


@given(st.text(st.characters(exclude_categories=["C", "M", "Z"])), st.integers(min_value=1, max_value=20))
def test_shortened_text_fits(text: str, width: int) -> None:
    assert display_width(shorten(text, width)) <= width


def test_wide_characters_count_twice_and_combining_ones_not_at_all() -> None:
    assert display_width("漢字") == 4
    assert display_width("e\u0301") == 1


def test_columns_line_up_and_the_widest_flexible_one_gives_way() -> None:
    rows = [[Cell("x" * 40), Cell("7")], [Cell("漢"), Cell("12345")]]
    lines = table(COLUMNS, rows, 20).splitlines()
    assert [display_width(line) for line in lines] == [20, 20, 20]
    assert lines[1].endswith("…      7")


def test_nothing_is_cut_where_the_output_is_no_terminal() -> None:
    assert "x" * 300 in table(COLUMNS, [[Cell("x" * 300), Cell("1")]], None)


@pytest.mark.parametrize(
    ("environ", "terminal", "colour"),
    [({}, True, True), ({"NO_COLOR": "1"}, True, False), ({"TERM": "dumb"}, True, False), ({}, False, False)],
)
def test_colour_only_on_a_terminal_that_wants_it(environ: dict[str, str], terminal: bool, colour: bool) -> None:
    assert use_colour(environ, is_terminal=terminal) is colour


def test_the_job_table_fits_80_columns_whatever_the_names() -> None:
    jobs = [
        job("a very long name of a job that somebody thought was a good idea " * 3),
        job("\x1b[2Jevil\nname", schedule=Cron("0,10,20,30,40,50 8-18 * * mon-fri", "America/Argentina/Buenos_Aires")),
        job("weekly", schedule=Every(86_400_000 * 7), next_ms=None, enabled=False, status="disabled"),
    ]
    lines = job_table(jobs, NOW_MS, 80).splitlines()
    assert len(lines) == 4
    assert all(display_width(line) <= 80 for line in lines)
    assert "\\x1b[2Jevil\\nname" in lines[2]


def test_the_run_table_fits_80_columns_whatever_the_names() -> None:
    runs = [
        run(),
        run(job_name="x" * 100, state="error", reason="program_not_executable", exit_code=None, signal=9),
        run(state="active", unverified_since_ms=1, duration_ms=None, exit_code=None),
        run(state="queued", waiting="launcher cannot start runs: No space left on device", run_at_ms=None),
    ]
    text = run_table(runs, NOW_MS, 80)
    assert all(display_width(line) <= 80 for line in text.splitlines())
    assert "SIGKILL" in text


def test_jobs_of_one_name_are_told_apart_by_their_ids() -> None:
    text = job_table([job("same", job_id="id-1"), job("same", job_id="id-2")], NOW_MS, None)
    assert "same id-1" in text
    assert "same id-2" in text


@pytest.mark.parametrize("hour", range(24))
def test_the_shown_hour_of_the_next_run_is_that_of_the_jobs_zone(hour: int) -> None:
    """B064: hours 0-3 were once shown moved by the zone's offset."""
    day_ms = NOW_MS - NOW_MS % 86_400_000
    view = job(schedule=Cron(f"0 {hour} * * *", "Asia/Yekaterinburg"), next_ms=day_ms + (hour + 24 - 5) * 3_600_000)
    shown = f"{hour:02}:00 +05:00"
    assert shown in job_table([view], NOW_MS, 80)
    assert f"{hour:02}:00:00 +05:00" in job_text(view, NOW_MS)


def test_a_secret_is_shown_by_its_place_alone() -> None:
    view = msgspec.structs.replace(
        job(), payload=Command(["/bin/x"], env={"A": "1"}, secrets={"KEY": Secret(file="/etc/key")})
    )
    assert "KEY from file /etc/key" in job_text(view, NOW_MS)
