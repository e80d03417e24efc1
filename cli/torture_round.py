"""One round: a failure injected at one point of a running installation, the recovery to rest, and the judgement."""

import random
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cronward.cli import torture_processes
from cronward.cli.session import pause
from cronward.cli.torture_load import PROGRAM, TICK_MS, Load
from cronward.cli.torture_oracle import SERVICE_FAILED, Seen, Verdict, judge
from cronward.cli.torture_scratch import Scratch, wait_until
from cronward.cli.torture_windows import DELAY_MS, KINDS, Action, Cell, Kind, Victims
from cronward.protocol import rundir
from cronward.protocol.clock import Clock
from cronward.protocol.errors import CronwardError
from cronward.protocol.views import RunView

WAVES_MAX = 4
HIT_MS = 3000
"""A wave of load that has not reached the point by then is followed by another."""

PROVOKE_MS = 400
HOLD_MS = (20, 250)
"""How long stopped victims stay silent before they are killed."""

_DAEMONS = (Kind.SCHEDULER, Kind.LAUNCHER)


class Result(msgspec.Struct, frozen=True):
    """What a round showed. Without `injected` its point was never reached. `observed` counts results of runs."""

    injected: bool
    runs: int
    observed: dict[str, int]
    lost: int
    repeated: int
    violations: list[str]
    duration_ms: int


class Injury(msgspec.Struct):
    """What was done: executors that died without finishing, those that got SIGTERM, and the process at the point."""

    killed: set[int]
    asked: set[int]
    at_point: int | None = None


class Bench:
    """One scratch installation that plays rounds as long as they end well. `keep` leaves its directory behind."""

    def __init__(
        self,
        root: Path,
        clock: Clock,
        rng: random.Random,
        first: Cell,
        *,
        capacity: int = 8,
        fork: bool = False,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self.scratch = Scratch(root, clock, capacity)
        self.rounds = 0
        self._clock = clock
        self._rng = rng
        self._judged: set[str] = set()
        self._last_tick: dict[int, int] = {}
        try:
            self.scratch.prepare(first)
            self._load = Load(self.scratch, rng, program, fork=fork)
        except BaseException:
            self.scratch.close()
            raise

    def close(self, *, keep: bool = False) -> None:
        """Ends every process; without `keep` the files go too. Raises Stuck."""
        self.scratch.close()
        if not keep:
            shutil.rmtree(self.scratch.root)

    def play(self, cell: Cell, following: Cell, rng: random.Random) -> Result:
        """One round; what dies in it is started ready for the `following` one."""
        began_ms = self._clock.mono_ms()
        self.rounds += 1
        injury = Injury(set(), set())
        try:
            self.scratch.prepare(cell)
            self._inject(cell, rng, injury)
            if injury.at_point is None:
                return Result(False, 0, {}, 0, 0, [], self._clock.mono_ms() - began_ms)
            self._recover(cell, following, rng)
            verdict, runs = self._judge(cell, injury)
        except CronwardError as error:
            self.scratch.logs.read()
            verdict, runs = Verdict([f"did not come to rest: {error}", *self.scratch.logs.bugs], 0, 0, {}), 0
        return Result(
            injury.at_point is not None,
            runs,
            verdict.observed,
            verdict.lost,
            verdict.repeated,
            verdict.violations,
            self._clock.mono_ms() - began_ms,
        )

    # the failure

    def _inject(self, cell: Cell, rng: random.Random, injury: Injury) -> None:
        """Arms the point, lets the load reach it, and hits the victims. While load is added the point is not armed, so
        that what is added is known."""
        for _ in range(WAVES_MAX):
            due_ms = self._load.wave(cell.row.long_runs)
            pause(max(0, due_ms - self._clock.wall_ms() + rng.uniform(-40, 40)))
            self.scratch.arm(cell.point)
            injury.at_point = self._wait_hit(cell, rng, injury)
            if injury.at_point is not None:
                self._hit(cell, rng, injury, injury.at_point)
                return
        self._load.finish_requests()

    def _wait_hit(self, cell: Cell, rng: random.Random, injury: Injury) -> int | None:
        end_ms = self._clock.mono_ms() + HIT_MS
        provoke_ms = self._clock.mono_ms()
        while self._clock.mono_ms() < end_ms:
            pid = self.scratch.hit_by(cell.point)
            if pid is not None:
                return pid
            if cell.row.provoked and self._clock.mono_ms() >= provoke_ms and self._kill_busy_executor(rng, injury):
                provoke_ms = self._clock.mono_ms() + PROVOKE_MS
            pause(2)
        return self.scratch.disarm(cell.point)

    def _kill_busy_executor(self, rng: random.Random, injury: Injury) -> bool:
        """Points that are only reached after a death need one."""
        found, kinds = self.scratch.processes()
        busy = sorted({p.parent for p in found if kinds[p.pid] is Kind.TASK and kinds.get(p.parent) is Kind.EXECUTOR})
        if not busy:
            return False
        chosen = rng.choice(busy)
        torture_processes.send([chosen], signal.SIGKILL)
        injury.killed.add(chosen)
        return True

    def _hit(self, cell: Cell, rng: random.Random, injury: Injury, at_point: int) -> None:
        """The process `at_point` is at the point and waits there, or has met its own end."""
        if cell.armed == "stop":
            wait_until(self._clock, lambda: torture_processes.state(at_point) in ("T", ""), "the point stops it")
        victims = self._victims(cell, at_point)
        executors = {pid for pid, kind in victims if kind is Kind.EXECUTOR}
        if cell.owner is Kind.EXECUTOR and cell.owner_dies:
            executors.add(at_point)
        (injury.killed if cell.kills else injury.asked).update(executors)
        pids = [pid for pid, _ in victims]
        if cell.action is Action.STOP:
            torture_processes.send(pids, signal.SIGSTOP)
            if at_point not in pids:
                torture_processes.send([at_point], signal.SIGCONT)
            pause(rng.uniform(*HOLD_MS))
        torture_processes.send(pids, signal.SIGKILL if cell.kills else signal.SIGTERM)
        if cell.armed == "stop":
            torture_processes.send([at_point], signal.SIGCONT)

    def _victims(self, cell: Cell, at_point: int) -> list[tuple[int, Kind]]:
        """Daemons first, tasks last: nobody is to save the end of a task that only the power cut ended."""
        _, kinds = self.scratch.processes()
        wanted = [(pid, kind) for pid, kind in kinds.items() if kind in KINDS[cell.victims]]
        if cell.owner is Kind.EXECUTOR and cell.victims is Victims.EXECUTOR:
            wanted = [(pid, kind) for pid, kind in wanted if pid == at_point]
        if cell.action in (Action.ERROR, Action.DELAY):
            wanted = [(pid, kind) for pid, kind in wanted if pid != at_point]
        return sorted(wanted, key=lambda victim: list(Kind).index(victim[1]))

    # the recovery

    def _recover(self, cell: Cell, following: Cell, rng: random.Random) -> None:
        """Starts what died, waits until nothing is queued or active, and sees that the schedule goes on."""
        ends = [kind for kind in _DAEMONS if kind in KINDS[cell.victims] and kind in self._hit_daemons(cell)]
        if cell.owner_dies and cell.owner in _DAEMONS and cell.owner not in ends:
            ends.append(cell.owner)
        self.scratch.reap(ends)
        if cell.action is Action.DELAY and not cell.owner_dies:
            pause(rng.uniform(0, DELAY_MS))
        order = list(_DAEMONS)
        rng.shuffle(order)
        self.scratch.start_missing(order, following)
        wait_until(self._clock, self.scratch.is_ready, "the launcher is reconciled again")
        self._load.finish_requests()
        self._load.probe()
        wait_until(self._clock, self._is_at_rest, "every run is over")
        wait_until(self._clock, self.scratch.is_quiet, "no process of a run is left")

    def _hit_daemons(self, cell: Cell) -> set[Kind]:
        """Daemons that end because they were hit; one that was only delayed, or met an error, may go on."""
        spared = {cell.owner} if cell.action in (Action.ERROR, Action.DELAY) else set[Kind]()
        return set(KINDS[cell.victims]) - spared

    def _is_at_rest(self) -> bool:
        status = self.scratch.status()
        if status is None or status.active or status.queued:
            return False
        records = {record.run_id: record for record in self._load.records()}
        if not all(run in records and records[run].status for run in self._load.planned):
            return False
        self.scratch.logs.read()
        return {run for run, record in records.items() if self._is_new_fault(record)} <= self.scratch.logs.told

    def _is_new_fault(self, record: RunView) -> bool:
        return record.run_id not in self._judged and record.reason in SERVICE_FAILED

    # the judgement

    def _judge(self, cell: Cell, injury: Injury) -> tuple[Verdict, int]:
        load = self._load
        wrote = load.sidelog.read()
        self.scratch.logs.read()
        new = [r for r in reversed(load.records()) if r.run_id not in self._judged]
        records = {record.run_id: record for record in new if record.status is not None}
        executors = self._executors(records)
        held = [run for run, pid in executors.items() if pid == injury.at_point]
        newest = max(held, key=lambda run: records[run].activated_at_ms or 0, default=None)
        ticks = {record.slot_ms: record.requested_at_ms for record in new if record.job_id == load.ticker}
        seen = Seen(
            cell=cell,
            planned=dict(load.planned),
            records=records,
            marks=load.sidelog.marks,
            rewritten=wrote & self._judged,
            executors=executors,
            killed=injury.killed,
            asked=injury.asked,
            at_point=newest if cell.owner is Kind.EXECUTOR else None,
            told=self.scratch.logs.told,
            faulted=self._faulted(records),
            ticker=load.ticker,
            ticks=self._last_tick | self.scratch.logs.consumed.pop(load.ticker, {}) | ticks,
            bugs=self.scratch.logs.bugs.copy(),
            anchor_ms=load.anchor_ms,
            tick_ms=TICK_MS,
        )
        self._judged |= records.keys()
        self._last_tick = dict(sorted(seen.ticks.items())[-1:])
        load.planned.clear()
        self.scratch.logs.bugs.clear()
        return judge(seen), len(records)

    def _executors(self, records: dict[str, RunView]) -> dict[str, int]:
        """Who was to carry out each run, from the intents in the run directories."""
        found: dict[str, int] = {}
        for run in records:
            try:
                data = (self.scratch.paths.run_directory(run) / rundir.INTENT).read_bytes()
            except FileNotFoundError:  # it was never published
                continue
            found[run] = rundir.decode_intent(data).executor.pid
        return found

    def _faulted(self, records: dict[str, RunView]) -> set[str]:
        """Interrupted and lost one-shots whose job counted it as a failure of its own, or is not disabled."""
        found: set[str] = set()
        for run, record in records.items():
            if record.reason in SERVICE_FAILED and run in self._load.planned and record.kind == "scheduled":
                job = self._load.job(record.job_id)
                if job.enabled or job.state.consecutive_errors:
                    found.add(run)
        return found
