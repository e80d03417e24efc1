"""The states of a supervised process, and lines on a terminal."""

import io
import itertools
import os
import threading

import pytest

from cronward.cli.console import Console, for_people
from cronward.cli.daemon import BACKOFF_MAX_MS, TRANSITIONS, Daemon, Event, State, backoff_ms
from cronward.protocol.clock import SystemClock


@pytest.mark.parametrize(("state", "event"), list(itertools.product(State, Event)))
def test_every_state_has_an_answer_to_every_event(state: State, event: Event) -> None:
    step = TRANSITIONS[state][event]
    assert step is None or step.state in State


def test_stop_always_leads_to_the_end() -> None:
    for state in State:
        step = TRANSITIONS[state][Event.STOP]
        assert step is not None
        assert step.state in (State.STOPPING, State.STOPPED)
    stopping = TRANSITIONS[State.STOPPING][Event.EXITED]
    assert stopping is not None
    assert stopping.state is State.STOPPED


def test_nothing_starts_again_once_it_is_to_stop() -> None:
    for state in (State.STOPPING, State.STOPPED):
        for step in TRANSITIONS[state].values():
            assert step is None or step.state in (State.STOPPING, State.STOPPED)


def test_what_cannot_happen_is_a_bug_and_said_so() -> None:
    daemon = Daemon("scheduler", ["/bin/true"], SystemClock(), {})
    with pytest.raises(AssertionError, match="scheduler is idle: exited cannot happen"):
        daemon.on(Event.EXITED)


def test_the_backoff_doubles_up_to_its_limit() -> None:
    assert [backoff_ms(failures) for failures in range(4)] == [250, 500, 1000, 2000]
    assert backoff_ms(1000) == BACKOFF_MAX_MS


def test_a_program_that_cannot_be_started_is_tried_again_later() -> None:
    daemon = Daemon("scheduler", ["/no/such/program"], SystemClock(), {})
    daemon.on(Event.START)
    assert daemon.state is State.WAITING
    assert daemon.deadline_ms is not None
    assert b"cannot be started" in b"".join(daemon.read_lines())


def test_the_supervisors_own_variables_do_not_reach_a_daemon() -> None:
    daemon = Daemon(
        "scheduler",
        ["/bin/sh", "-c", 'echo "$NOTIFY_SOCKET:$WATCHDOG_USEC:$A"'],
        SystemClock(),
        {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1", "A": "b"},
    )
    daemon.on(Event.START)
    assert daemon.pid is not None
    daemon.reaped(os.waitpid(daemon.pid, 0)[1])
    assert daemon.read_lines() == [b"::b"]


LINE = '{"ts_ms":1796184215000,"level":"info","process":"scheduler","pid":1,"event":"e","message":"ready","run":"r"}'


def test_a_log_line_is_told_in_words_with_zone_and_fields() -> None:
    text = for_people(LINE, colour=False)
    assert text.endswith("scheduler ready  run=r")
    assert text[8] == " "
    assert text.split()[1]


def test_a_traceback_follows_its_line() -> None:
    assert for_people(LINE[:-1] + ',"traceback":"Trace\\n  back"}', colour=False).endswith("\nTrace\n  back")


@pytest.mark.parametrize("line", ["plain words", '{"ts_ms":1}', "[1]", '"x"', "\x1b[31mevil"])
def test_what_is_no_log_line_is_shown_as_it_is_but_harmless(line: str) -> None:
    assert for_people(line, colour=False) == line.replace("\x1b", "\\x1b")


class Held(io.StringIO):
    """A terminal that takes nothing until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def write(self, text: str) -> int:
        self.released.wait(10)
        return super().write(text)


def test_a_held_terminal_costs_lines_and_never_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cronward.cli.console._QUEUE_MAX", 10)
    stream = Held()
    console = Console(SystemClock(), as_json=True, stream=stream)
    for number in range(100):
        console.pass_on(b"%d" % number)
    stream.released.set()
    console.close()
    lines = stream.getvalue().splitlines()
    lost = sum(int(line.split()[1]) for line in lines if line.startswith("…"))
    assert len([line for line in lines if line.isdigit()]) + lost in (99, 100)
    assert lost >= 80
