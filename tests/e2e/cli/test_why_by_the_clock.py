"""`cronward why` with real processes under a clock that the test sets: what takes months, and clock events."""

import datetime as dt
import signal
import time
from collections.abc import Iterator

import pytest

from tests.e2e.cli.service import Service
from tests.support.shifted_clock import ShiftedClock
from tests.support.waiting import wait_until

NEW_YORK = ("--tz", "America/New_York", "--exact")


class Clocked:
    """A service whose wall clock is the test's; the commands have it, too."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._clock = ShiftedClock(service.root / "shift")
        service.environ |= self._clock.environ()

    def show(self, instant: str) -> None:
        """From now on it is this instant (UTC), and time goes on from there."""
        self._clock.set(round(dt.datetime.fromisoformat(instant + "+00:00").timestamp() - time.time()))

    def start(self) -> None:
        """`cronward up`, however often."""
        self.service.start_up()
        self.service.wait_event("up.ready", len(self.service.ups))
        self.service.wait_reconciled()

    def add(self, name: str, schedule: str, *options: str, program: str = "true") -> str:
        """The new job's id."""
        return str(self.service.ask("add", schedule, "--name", name, *options, "--", *program.split())["id"])

    def why(self, job: str, at: str = "") -> dict[str, object]:
        return self.service.ask("why", job, *([at] if at else []))

    def wait_why(self, job: str, at: str, cause: str) -> dict[str, object]:
        wait_until(lambda: self.why(job, at)["cause"] == cause, f"why {job} {at}: {cause}", 20, poll_s=0.1)
        return self.why(job, at)


@pytest.fixture
def clocked() -> Iterator[Clocked]:
    with Service() as service:
        yield Clocked(service)


def run_of(answer: dict[str, object]) -> dict[str, object]:
    run = answer["run"]
    assert isinstance(run, dict)
    return run


def test_when_the_clocks_of_a_zone_change(clocked: Clocked) -> None:
    """A fixed time that does not exist is moved, one that comes twice runs once; what keeps pace is left out."""
    clocked.show("2027-03-14T06:59:50")
    clocked.start()
    clocked.add("night", "30 2 * * *", *NEW_YORK)
    clocked.add("half", "30 * * * *", *NEW_YORK)
    moved = clocked.why("night", "2027-03-14T02:30")
    assert moved["cause"] == "coming"
    assert "moved from 2027-03-14 02:30" in str(moved["note"])
    clocked.show("2027-03-14T06:59:59")
    ran = clocked.wait_why("night", "2027-03-14T02:30", "ran")
    assert ran["slotMs"] == moved["slotMs"] == 1805007600_000
    assert int(str(ran["lateMs"])) < 20_000
    swallowed = clocked.why("half", "2027-03-14T02:30")
    assert swallowed["cause"] == "swallowed"
    assert "does not exist" in str(swallowed["note"])
    clocked.show("2027-11-07T05:29:50")
    clocked.add("early", "30 1 * * *", *NEW_YORK)
    clocked.show("2027-11-07T05:29:59")
    clocked.wait_why("early", "2027-11-07T05:30Z", "ran")
    clocked.show("2027-11-07T06:31:00")
    assert clocked.why("early", "2027-11-07T06:30Z")["cause"] == "swallowed"
    text = clocked.service.run("why", "early", "2027-11-07T06:30Z").stdout
    assert "the zone's clocks left it out" in text


def test_what_went_on_failing(clocked: Clocked) -> None:
    clocked.show("2027-05-01T10:00:50")
    clocked.start()
    clocked.add("bad", "*/20 * * * * *", "--exact", "--disable-after", "2", program="sh -c false")
    clocked.show("2027-05-01T10:00:59")
    failed = clocked.wait_why("bad", "2027-05-01T10:01:00Z", "ran")
    assert run_of(failed)["status"] == "error"
    left_out = clocked.why("bad", "2027-05-01T10:01:20Z")
    assert left_out["cause"] == "backoff"
    again_ms = int(str(left_out["untilMs"]))
    assert 1_000 * 29 <= again_ms - int(str(failed["slotMs"])) <= 1_000 * 55
    clocked.show("2027-05-01T10:02:30")
    off = clocked.wait_why("bad", "2027-05-01T10:03:00Z", "auto_disabled")
    assert "2" in str(off["detail"])
    assert off["by"] != ""
    assert clocked.why("bad", "2027-05-01T10:01:20Z")["cause"] == "backoff"


def test_a_machine_that_slept_and_a_clock_that_was_ahead(clocked: Clocked) -> None:
    clocked.show("2027-06-01T07:59:50")
    clocked.start()
    clocked.add("hourly", "0 * * * *", "--exact")
    clocked.show("2027-06-03T12:30:00")
    made_up = clocked.wait_why("hourly", "2027-06-03T12:00Z", "ran")
    dropped = clocked.why("hourly", "2027-06-02T10:00Z")
    assert dropped["cause"] == "dropped"
    assert run_of(dropped)["runId"] == run_of(made_up)["runId"]
    clocked.show("2027-06-01T12:30:00")
    ahead = clocked.wait_why("hourly", "+1h", "far_ahead")
    assert ahead["untilMs"] == run_ms("2027-06-03T13:00:00")
    clocked.service.ask("edit", "hourly", "--reschedule")
    assert clocked.why("hourly", "+1h")["cause"] == "coming"
    clocked.service.ask("edit", "hourly", "--cron", "30 * * * *")
    edited = clocked.why("hourly", "2027-06-01T13:00Z")
    assert edited["cause"] == "edited"
    assert str(edited["by"]).startswith("uid ")
    assert 0 <= int(str(edited["sinceMs"])) - run_ms("2027-06-01T12:30:00") < 60_000


def run_ms(instant: str) -> int:
    return round(dt.datetime.fromisoformat(instant + "+00:00").timestamp() * 1000)


def test_who_waited_was_withdrawn_used_up_or_removed(clocked: Clocked) -> None:
    clocked.service.environ["CRONWARD_CAPACITY_RUNS"] = "1"
    clocked.show("2027-07-01T09:59:50")
    clocked.start()
    for name in ("first", "second", "third"):
        job = clocked.add(name, "2027-07-01T10:00:00Z", "--keep-after-run", program="sleep 3")
    clocked.show("2027-07-01T09:59:59")
    clocked.wait_why("first", "", "running")
    assert clocked.wait_why("second", "", "waiting")["slotMs"] == run_ms("2027-07-01T10:00:00")
    clocked.service.ask("disable", "third")
    withdrawn = clocked.wait_why("third", "", "skipped")
    assert withdrawn["detail"] == "the job was disabled before the run started"
    ran = clocked.wait_why("second", "", "ran")
    assert ran["delayedBy"] == "waiting"
    assert int(str(ran["lateMs"])) >= 2_000
    assert "by" not in ran
    clocked.service.ask("rm", "third")
    gone = clocked.why(job, "2027-07-02T10:00Z")
    assert gone["cause"] == "removed"
    assert str(gone["by"]).startswith("uid ")


def test_what_was_missed_in_a_downtime_takes_its_turn(clocked: Clocked) -> None:
    """Five at once, the others every five seconds: until then they are deferred."""
    clocked.show("2027-08-01T08:00:00")
    clocked.start()
    for number in range(6):
        clocked.add(f"daily{number}", f"{number} 9 * * *", "--exact")
    assert clocked.service.stop_up(signal.SIGTERM) == 0
    clocked.show("2027-08-01T12:00:00")
    clocked.start()
    clocked.wait_why("daily5", "2027-08-01T09:05Z", "deferred")
    ran = clocked.wait_why("daily0", "2027-08-01T09:00Z", "ran")
    assert ran["delayedBy"] == "down"
    assert int(str(ran["lateMs"])) >= 3 * 3_600_000
    assert clocked.wait_why("daily5", "2027-08-01T09:05Z", "ran")["delayedBy"] == "down"
    assert clocked.why("daily0", "2027-08-01T09:01Z")["cause"] == "not_a_slot"
    assert len(list(clocked.why("daily0", "2027-08-01T09:01Z")["nearest"])) == 2  # type: ignore[call-overload]
