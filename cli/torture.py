"""`torture`: crashes on purpose, in an installation of its own, and the proof that nothing is lost or repeated."""

import contextlib
import secrets
import signal
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from cronward.cli.session import Session, pause, print_json, with_session
from cronward.cli.text import terminal_width
from cronward.cli.torture_plan import Plan, choose_points
from cronward.cli.torture_report import Journal, Played, render, summarize
from cronward.cli.torture_round import Bench
from cronward.cli.torture_windows import Cell
from cronward.protocol.clock import Clock
from cronward.protocol.errors import Code, CronwardError

FRESH_AFTER = 50
"""Rounds with one installation: its ledger and its logs stay small."""

PROGRESS_ROUNDS = 50
LOOK_MS = 200


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=100, show_default=True, help="How many failures to inject.")
@click.option("--seed", type=int, help="Repeats the choice of an earlier torture, which printed it.")
@click.option("--points", "points", metavar="LIST", help="Failpoints by name, pattern or window; all if not given.")
@click.option("--parallel", type=click.IntRange(1, 64), default=1, show_default=True, help="Installations at a time.")
@click.option("--capacity", type=click.IntRange(1, 128), default=8, show_default=True, help="Runs at a time in each.")
@click.option("--fork", is_flag=True, help="Commands leave processes behind, which must not outlive them.")
@click.option("--resume", "journal", type=click.Path(dir_okay=False, path_type=Path), help="Note rounds in this file.")
@with_session
def torture(
    session: Session,
    rounds: int,
    seed: int | None,
    points: str | None,
    parallel: int,
    capacity: int,
    fork: bool,
    journal: Path | None,
) -> int:
    """Crash Cronward on purpose, in an installation of its own, and check that nothing is lost or repeated.

    A round runs commands that write down themselves that they ran, makes a process fail at one point, kills some or
    all processes there, starts them again, and compares everything with the table of crash windows (docs). Exit code 1
    after a violation; the installation is then kept. 2 if a chosen point was never reached. With --resume a torture
    that was interrupted goes on where it was; give it the same options, and the same seed.

    The installation is a new directory, or the one that --state names before the command, if that is empty.

    \b
      cronward torture
      cronward torture --rounds 1000 --parallel 4 --seed 7 --resume torture.jsonl
      cronward torture --points 'executor.*,3,4' --fork --json
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: no process of an installation stays behind
    chosen = choose_points(points)
    plan = Plan(secrets.randbelow(2**31) if seed is None else seed, rounds, chosen, capacity, fork)
    if points is None:
        chosen = [point for point in chosen if point in {cell.point for cell in plan.cells()}]
    root = _own_directory(session.options.state)
    notes = Journal(journal, plan) if journal else None
    click.echo(f"seed {plan.seed}", err=True)
    began_ms = session.clock.mono_ms()
    try:
        played = _Torture(plan, root, session.clock, parallel, notes).run()
    finally:
        if notes is not None:
            notes.close()
        with contextlib.suppress(OSError):  # something is kept in it
            root.rmdir()
    report = summarize(plan, played, chosen, session.clock.mono_ms() - began_ms)
    if session.as_json:
        print_json(report)
    else:
        click.echo(render(report, terminal_width()))
    return report.exit_code


def _own_directory(named: str | None) -> Path:
    """An empty directory. Raises CronwardError for one that holds anything: it may be somebody's installation."""
    if named is None:
        return Path(tempfile.mkdtemp(prefix="cronward-torture-"))
    root = Path(named).absolute()
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise CronwardError(Code.STATE_DIR_UNUSABLE, f"{root} is not empty; torture works in a directory of its own")
    return root


class _Torture:
    """The rounds of a plan, dealt out to as many installations as there are to be at a time."""

    def __init__(self, plan: Plan, root: Path, clock: Clock, parallel: int, journal: Journal | None) -> None:
        self._plan = plan
        self._root = root
        self._clock = clock
        self._parallel = parallel
        self._journal = journal
        self._played = list(journal.played) if journal else []
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def run(self) -> list[Played]:
        """Every round that was played, now or before. An error of a worker, or Ctrl-C, stops the others."""
        done = {played.number for played in self._played}
        todo = [(number, cell) for number, cell in enumerate(self._plan.cells()) if number not in done]
        shares = [todo[first :: self._parallel] for first in range(self._parallel)]
        with ThreadPoolExecutor(self._parallel) as threads:
            working = [threads.submit(self._work, share) for share in shares if share]
            try:
                while not all(work.done() for work in working):
                    self._stop_after_error([work.exception for work in working if work.done()])
                    pause(LOOK_MS)
            finally:
                self._stop.set()
        for work in working:
            work.result()
        return self._played

    def _stop_after_error(self, ended: list[Callable[[], BaseException | None]]) -> None:
        if any(exception() is not None for exception in ended):
            self._stop.set()

    def _work(self, share: list[tuple[int, Cell]]) -> None:
        """Plays rounds in one installation after the other."""
        bench: Bench | None = None
        try:
            for place, (number, cell) in enumerate(share):
                if self._stop.is_set():
                    return
                following = share[place + 1][1] if place + 1 < len(share) else cell
                bench = bench or self._new_bench(number, cell)
                result = bench.play(cell, following, self._plan.rng(number))
                kept = str(bench.scratch.root) if result.violations else None
                self._note(Played(number, cell, result, kept))
                if kept or not result.injected or bench.rounds >= FRESH_AFTER:
                    used, bench = bench, None
                    used.close(keep=kept is not None)
        finally:
            if bench is not None:
                bench.close()

    def _new_bench(self, number: int, first: Cell) -> Bench:
        root = self._root / f"{number:05}"
        return Bench(
            root, self._clock, self._plan.rng(number), first, capacity=self._plan.capacity, fork=self._plan.fork
        )

    def _note(self, played: Played) -> None:
        with self._lock:
            self._played.append(played)
            if self._journal is not None:
                self._journal.add(played)
            done = len(self._played)
            if done % PROGRESS_ROUNDS == 0:
                bad = sum(len(one.result.violations) for one in self._played)
                click.echo(f"{done} of {self._plan.rounds} rounds, {bad} violations", err=True)
        for violation in played.result.violations:
            click.echo(f"round {played.number}, {played.cell}: {violation}", err=True)
