"""Rules of torture: what its oracle finds, how rounds are chosen, and what the report says."""

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.cli.torture_load import Marks, SideLog
from cronward.cli.torture_logs import DaemonLogs
from cronward.cli.torture_oracle import Seen, judge
from cronward.cli.torture_plan import Plan, choose_points
from cronward.cli.torture_processes import Process, kinds
from cronward.cli.torture_report import NOTHING_SHOWN, Journal, Played, Report, render, summarize
from cronward.cli.torture_round import Result
from cronward.cli.torture_windows import LAUNCHES_AT_RISK, ROWS, Action, Cell, Kind, Victims, cells
from cronward.protocol import exits
from cronward.protocol.errors import CronwardError
from cronward.protocol.failpoints import WINDOWS
from cronward.protocol.views import RunView

AFTER_TASK = Cell("executor.after_task", Action.KILL, Victims.EXECUTOR)
DEAD, ALIVE = 100, 101


def record(run: str, state: str = "ok", reason: str | None = None, **fields: object) -> RunView:
    status = state if state in ("ok", "error", "skipped") else None
    values: dict[str, object] = {
        "run_id": run,
        "key": "",
        "job_id": f"job-{run}",
        "job_name": run,
        "kind": "scheduled",
        "state": state,
        "status": status,
        "ts": 0,
        "slot_ms": 1000,
        "requested_at_ms": 1000,
        "action": "finished",
        "reason": reason,
    }
    return RunView(**(values | fields))  # type: ignore[arg-type]  # fields of a struct, by name


def good(cell: Cell = AFTER_TASK) -> Seen:
    """A round in which the executor that held `hit` died at the point, and everything else went well."""
    return Seen(
        cell=cell,
        planned={"hit": "one", "fine": "two"},
        records={"hit": record("hit", "error", "interrupted"), "fine": record("fine")},
        marks={"hit": Marks(1, 1), "fine": Marks(1, 1)},
        rewritten=set(),
        executors={"hit": DEAD, "fine": ALIVE},
        killed={DEAD},
        asked=set(),
        at_point="hit",
        told={"hit"},
        faulted=set(),
        bugs=[],
        ticker="ticker",
        ticks={500: 500, 1000: 1700, 2000: 2000},
        anchor_ms=0,
        tick_ms=500,
    )


def test_a_round_as_the_table_says_breaks_no_rule() -> None:
    verdict = judge(good())
    assert (verdict.violations, verdict.lost, verdict.repeated) == ([], 0, 0)
    assert verdict.observed == {"interrupted": 1, "ok": 1}


def broken(change: Callable[[Seen], None], cell: Cell = AFTER_TASK) -> Seen:
    seen = good(cell)
    change(seen)
    return seen


def put(name: str, **values: object) -> Callable[[Seen], None]:
    """Puts values into one of the maps."""
    return lambda seen: getattr(seen, name).update(values)


def drop(name: str, key: str) -> Callable[[Seen], None]:
    return lambda seen: getattr(seen, name).pop(key)


LOST: dict[str, Callable[[Seen], None]] = {
    "no record of fine": drop("records", "fine"),
    "fine is still active": put("records", fine=record("fine", "active")),
    "1500 was due": lambda seen: seen.ticks.update({1000: 1400}),  # type: ignore[attr-defined]  # it is a dict
    "beyond the 0 that the table allows": put("records", fine=record("fine", "error", "launch_lost")),
}
REPEATED: dict[str, Callable[[Seen], None]] = {
    "began 2 times": put("marks", fine=Marks(2, 1)),
    "ended 2 times": put("marks", fine=Marks(1, 2)),
    "wrote again after it was over": lambda seen: seen.rewritten.add("older"),
    "2 records": put("records", again=record("again", job_id="job-fine")),
}
OTHERS: dict[str, Callable[[Seen], None]] = {
    "nobody asked for this run": put("records", stray=record("stray")),
    "did not come to its end": put("marks", fine=Marks(1, 0)),
    "recorded as spawn_failed, but its command ran": put("records", fine=record("fine", "skipped", "spawn_failed")),
    "contradicted later by ok": put("records", fine=record("fine", late_outcome="ok")),
    "fine: interrupted (None), which nothing done to it explains": put(
        "records", fine=record("fine", "error", "interrupted")
    ),
    "fine: terminated": put("records", fine=record("fine", "error", "terminated")),
    "fine: signal": put("records", fine=record("fine", "error", "signal")),
    "hit: ok; at executor.after_task it is interrupted": put("records", hit=record("hit")),
    "not what executor.after_task says": put("marks", hit=Marks(1, 0)),
    "no notice names it": lambda seen: seen.told.clear(),
    "message.failed: again": lambda seen: seen.bugs.append("message.failed: again"),
    "made to answer for it": lambda seen: seen.faulted.add("hit"),
}


@pytest.mark.parametrize("text", LOST | REPEATED | OTHERS)
def test_each_broken_rule_is_said_and_counted(text: str) -> None:
    verdict = judge(broken((LOST | REPEATED | OTHERS)[text]))
    assert any(text in violation for violation in verdict.violations), verdict
    assert (verdict.lost > 0, verdict.repeated > 0) == (text in LOST, text in REPEATED)


def with_launcher_dead(lost: int) -> Seen:
    seen = good(Cell("launcher.after_receive", Action.KILL, Victims.LAUNCHER))
    names = [f"lost{number}" for number in range(lost)]
    seen.planned = dict.fromkeys(names, "job")
    seen.records = {name: record(name, "error", "launch_lost") for name in names}
    seen.marks, seen.executors, seen.killed, seen.at_point, seen.told = {}, {}, set(), None, set(names)
    return seen


def test_a_dead_daemon_may_cost_sixteen_launches_and_no_more() -> None:
    assert judge(with_launcher_dead(LAUNCHES_AT_RISK)).violations == []
    assert judge(with_launcher_dead(LAUNCHES_AT_RISK + 1)).lost == 1


def test_a_process_that_dies_in_window_4_costs_something() -> None:
    assert "no run is launch_lost" in judge(with_launcher_dead(0)).violations[0]


def test_one_run_without_an_executor_may_be_interrupted_with_its_launcher() -> None:
    seen = with_launcher_dead(1)
    seen.records = {name: record(name, "error", "interrupted") for name in ("one", "two")}
    seen.planned, seen.told = {"one": "", "two": ""}, {"one", "two"}
    assert sum("explains" in violation for violation in judge(seen).violations) == 1


# what is killed, and by what


def name(value: object) -> str:
    """The same in every process: sets have no order of their own."""
    return "+".join(sorted(value)) if isinstance(value, set) else str(value)


@pytest.mark.parametrize(
    ("cell", "armed", "owner_dies", "killed"),
    [
        (Cell("launcher.after_receive", Action.KILL, Victims.LAUNCHER), "crash", True, {Kind.LAUNCHER}),
        (Cell("launcher.after_receive", Action.KILL, Victims.SCHEDULER), "stop", False, {Kind.SCHEDULER}),
        (Cell("launcher.after_receive", Action.STOP, Victims.BOTH), "stop", True, {Kind.SCHEDULER, Kind.LAUNCHER}),
        (Cell("launcher.after_receive", Action.TERM, Victims.EVERYTHING), "stop", False, set()),
        (Cell("launcher.after_receive", Action.ERROR, Victims.SCHEDULER), "error", False, {Kind.SCHEDULER}),
        (Cell("executor.after_task", Action.ERROR, Victims.LAUNCHER), "error", True, {Kind.EXECUTOR, Kind.LAUNCHER}),
        (Cell("executor.after_task", Action.DELAY, Victims.EXECUTOR), "delay:400", False, set()),
        (Cell("executor.after_task", Action.KILL, Victims.EVERYTHING), "crash", True, set(Kind)),
        (Cell("scheduler.before_notify", Action.TERM, Victims.ZYGOTE), "stop", False, {Kind.EXECUTOR}),
    ],
    ids=name,
)
def test_what_an_action_does_to_whom(cell: Cell, armed: str, owner_dies: bool, killed: set[Kind]) -> None:
    assert (cell.armed, cell.owner_dies, set(cell.killed)) == (armed, owner_dies, killed)


def test_a_zygote_is_told_from_what_it_forked() -> None:
    def process(pid: int, arguments: str, threads: int = 1, start: int = 0, parent: int = 2) -> Process:
        return Process(pid, parent, start, threads, arguments)

    zygote = "/usr/bin/python3 -P -m cronward.executor.zygote 3 /r/run"
    found = kinds(
        [
            process(1, "python -m cronward.scheduler serve"),
            process(2, "python -m cronward.launcher"),
            process(3, zygote, start=30),
            process(4, zygote, threads=3, start=40),
            process(5, zygote, start=50),
            process(6, "sleep 60", parent=4),
            process(7, zygote, parent=4, start=10),
        ],
        scheduler=1,
        launcher=2,
    )
    assert list(found.values()) == [
        Kind.SCHEDULER,
        Kind.LAUNCHER,
        Kind.ZYGOTE,
        Kind.EXECUTOR,
        Kind.EXECUTOR,
        Kind.TASK,
        Kind.TASK,
    ]


# the choice


@given(st.integers(0, 2**31), st.integers(1, 200))
def test_a_plan_is_the_same_for_the_same_seed_and_takes_all_points_in_turn(seed: int, rounds: int) -> None:
    plan = Plan(seed, rounds, list(ROWS))
    drawn = plan.cells()
    assert drawn == Plan(seed, rounds, list(ROWS)).cells()
    assert len(drawn) == rounds
    assert all(cell in set(cells(cell.point)) for cell in drawn[:20])
    counts = [sum(cell.point == point for cell in drawn) for point in ROWS]
    assert max(counts) - min(counts) <= 1


def test_points_are_chosen_by_name_pattern_and_window() -> None:
    assert choose_points(None) == list(WINDOWS)
    assert choose_points("5, executor.after_task") == [
        "launcher.after_publish",
        "launcher.after_hand_over",
        "executor.after_task",
    ]
    assert choose_points("launcher.*,4") == [point for point in WINDOWS if point.startswith("launcher.")]
    with pytest.raises(click.BadParameter, match=r"window 13 has no failpoint; .*cronward failpoints"):
        choose_points("13")


# report and journal


def played(number: int, cell: Cell, *, injected: bool = True, violations: list[str] | None = None) -> Played:
    found = violations or []
    return Played(number, cell, Result(injected, 10, {"ok": 9, "launch_lost": 1}, len(found), 0, found, 1000))


def report_of(*rounds: Played, chosen: tuple[str, ...] = ("executor.after_task",)) -> Report:
    return summarize(Plan(7, len(rounds), list(chosen)), rounds, chosen, 2000)


def test_the_report_adds_up_and_its_table_shows_it() -> None:
    report = report_of(played(1, AFTER_TASK), played(0, AFTER_TASK))
    assert (report.rounds, report.runs, report.injected, report.exit_code) == (2, 20, 2, exits.OK)
    text = render(report, None)
    assert "ok 18, launch_lost 2" in text
    assert "0 repeated, 0 lost beyond the table, 0 violations (seed 7)" in text


def test_a_violation_is_exit_code_1_and_named() -> None:
    report = report_of(played(0, AFTER_TASK, violations=["x: began 2 times"]))
    assert (report.exit_code, report.violations) == (exits.ERROR, 1)
    assert "executor.after_task/kill/executor" in render(report, None)
    assert "x: began 2 times" in render(report, 80)


def test_a_point_that_was_never_reached_is_exit_code_2() -> None:
    assert report_of(played(0, AFTER_TASK, injected=False)).exit_code == NOTHING_SHOWN
    assert report_of(played(0, AFTER_TASK), chosen=("executor.after_task", "executor.after_ack")).exit_code == 2
    assert report_of().exit_code == NOTHING_SHOWN


def test_a_journal_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    plan, file = Plan(1, 3, ["executor.after_task"]), tmp_path / "journal"
    first = Journal(file, plan)
    first.add(played(0, AFTER_TASK))
    first.add(played(1, AFTER_TASK))
    first.close()
    file.write_bytes(file.read_bytes()[:-5])
    second = Journal(file, plan)
    assert second.played == [played(0, AFTER_TASK)]
    second.add(played(1, AFTER_TASK))
    second.close()
    third = Journal(file, plan)
    third.close()
    assert third.played == [played(0, AFTER_TASK), played(1, AFTER_TASK)]


def test_a_journal_of_another_torture_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    Journal(file, Plan(1, 3, ["executor.after_task"])).close()
    with pytest.raises(CronwardError, match="of another torture"):
        Journal(file, Plan(2, 3, ["executor.after_task"]))
    file.write_text("anything")
    with pytest.raises(CronwardError, match="no journal"):
        Journal(file, Plan(1, 3, ["executor.after_task"]))


# witnesses


def test_the_side_log_is_read_as_it_grows(tmp_path: Path) -> None:
    log = SideLog(tmp_path / "sidelog")
    assert log.read() == set()
    log.file.write_text("1 once:start a\n2 once:end a\n3 other:st")
    assert log.read() == {"a"}
    with log.file.open("a") as file:
        file.write("art b\n")
    assert log.read() == {"b"}
    assert log.marks == {"a": Marks(1, 1), "b": Marks(1, 0)}


def test_the_daemons_logs_are_read_as_they_grow(tmp_path: Path) -> None:
    logs = DaemonLogs()
    logs.files.append(tmp_path / "log")
    logs.files[0].write_text('{"event":"notice.sent","runs":["a"]}\n{"event":"slot.consumed","job":"j","slot')
    logs.read()
    assert (logs.told, logs.consumed) == ({"a"}, {})
    with logs.files[0].open("a") as file:
        file.write('_ms":500,"ts_ms":501}\n')
        file.write('{"event":"message.failed","message":"a bug","traceback":"Traceback\\n  at\\nKeyError: 1"}\n')
        file.write('{"event":"launcher.bug","message":"ends","traceback":"a\\nx.FailpointError: failpoint y"}\n')
    logs.read()
    assert logs.consumed == {"j": {500: 501}}
    assert logs.bugs == ["message.failed: a bug KeyError: 1"]
