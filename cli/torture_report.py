"""What all rounds together showed, as a table and as JSON; and the journal from which an interrupted one goes on."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import msgspec

from cronward.cli.text import Cell as TableCell
from cronward.cli.text import Column, table
from cronward.cli.torture_plan import Plan
from cronward.cli.torture_round import Result
from cronward.cli.torture_windows import ROWS, Cell
from cronward.protocol import exits
from cronward.protocol.errors import Code, CronwardError
from cronward.protocol.failpoints import WINDOWS


class Played(msgspec.Struct, frozen=True):
    """One round. `kept` is where its installation was left for inspection."""

    number: int
    cell: Cell
    result: Result
    kept: str | None = None


class Window(msgspec.Struct, frozen=True):
    """All rounds at one point. `expected` is what becomes of the run there if its process dies there; `observed`
    counts the results of every run of those rounds; `lost` and `repeated` are occurrences beyond the table."""

    window: str
    point: str
    injected: int
    expected: str
    observed: dict[str, int]
    lost: int
    repeated: int


class Finding(msgspec.Struct, frozen=True):
    """A round that broke a rule."""

    round: int
    cell: str
    violations: list[str]
    directory: str | None


class Report(msgspec.Struct, frozen=True):
    """The result of a torture. `repeated`, `lost` and `violations` are 0 if the table holds."""

    seed: int
    rounds: int
    runs: int
    injected: int
    windows: list[Window]
    repeated: int
    lost: int
    violations: int
    findings: list[Finding]
    duration_ms: int

    @property
    def exit_code(self) -> int:
        """1 after a violation, 2 if a chosen point was never reached or nothing ran."""
        if self.violations:
            return exits.ERROR
        never_hit = any(window.injected == 0 for window in self.windows)
        return NOTHING_SHOWN if never_hit or self.runs == 0 else exits.OK


NOTHING_SHOWN = 2


def summarize(plan: Plan, played: Iterable[Played], chosen: Iterable[str], duration_ms: int) -> Report:
    """The report on the rounds, with a row for each of the `chosen` points."""
    rounds = sorted(played, key=lambda one: one.number)
    results = [one.result for one in rounds]
    findings = [
        Finding(one.number, str(one.cell), one.result.violations, one.kept) for one in rounds if one.result.violations
    ]
    return Report(
        seed=plan.seed,
        rounds=len(rounds),
        runs=sum(result.runs for result in results),
        injected=sum(result.injected for result in results),
        windows=[_window(point, [one.result for one in rounds if one.cell.point == point]) for point in chosen],
        repeated=sum(result.repeated for result in results),
        lost=sum(result.lost for result in results),
        violations=sum(len(result.violations) for result in results),
        findings=findings,
        duration_ms=duration_ms,
    )


def _window(point: str, results: list[Result]) -> Window:
    observed: Counter[str] = Counter()
    for result in results:
        observed.update(result.observed)
    return Window(
        WINDOWS[point],
        point,
        sum(result.injected for result in results),
        ROWS[point].expected,
        dict(observed.most_common()),
        sum(result.lost for result in results),
        sum(result.repeated for result in results),
    )


_COLUMNS = [
    Column("WINDOW", right=True),
    Column("FAILPOINT"),
    Column("INJECTED", right=True),
    Column("EXPECTED AT THE POINT", flexible=True),
    Column("OBSERVED, ALL RUNS", flexible=True),
    Column("LOST", right=True),
    Column("REPEATED", right=True),
]


def render(report: Report, width: int | None) -> str:
    """The table, what broke a rule, and one line that sums it up."""
    rows = [
        [
            TableCell(window.window),
            TableCell(window.point),
            TableCell(str(window.injected), "" if window.injected else "red"),
            TableCell(window.expected),
            TableCell(", ".join(f"{result} {count}" for result, count in window.observed.items())),
            TableCell(str(window.lost), "red" if window.lost else ""),
            TableCell(str(window.repeated), "red" if window.repeated else ""),
        ]
        for window in report.windows
    ]
    lines = [table(_COLUMNS, rows, width)]
    for finding in report.findings:
        lines.append(f"\nround {finding.round}, {finding.cell}: kept in {finding.directory}")
        lines += [f"  {violation}" for violation in finding.violations]
    seconds = report.duration_ms / 1000
    lines.append(
        f"\n{report.rounds} rounds, {report.injected} failures injected, {report.runs} runs in {seconds:.0f} s: "
        f"{report.repeated} repeated, {report.lost} lost beyond the table, {report.violations} violations"
        f" (seed {report.seed})"
    )
    return "\n".join(lines)


class Journal:
    """A file with the plan in its first line and a line for each round that was played."""

    def __init__(self, file: Path, plan: Plan) -> None:
        """Raises CronwardError if the file is of another plan."""
        self.played: list[Played] = []
        data = file.read_bytes() if file.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]  # a line that was cut is of a round that is played again
        lines = whole.splitlines()
        if data:
            try:
                found = msgspec.json.decode(lines[0] if lines else data, type=Plan)
                self.played = [msgspec.json.decode(line, type=Played) for line in lines[1:]]
            except msgspec.DecodeError as error:
                raise CronwardError(Code.INVALID_REQUEST, f"{file} is no journal of torture: {error}") from None
            if found != plan:
                raise CronwardError(Code.INVALID_REQUEST, f"{file} is of another torture: {found}")
        self._file = file.open("ab")
        self._file.truncate(len(whole))
        if not lines:
            self._write(plan)

    def add(self, played: Played) -> None:
        self._write(played)

    def close(self) -> None:
        self._file.close()

    def _write(self, line: Plan | Played) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
