"""The ledger against a simple model: requests, launches, outcomes in any order, repeated and late, cancels, edits, lost
launches and restarts, over the real actor and database.

The model plays the launcher: it knows what it was really given and what became of it.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from cronward.protocol import ids, launch, outcome
from cronward.protocol.config import Capacity, Config
from cronward.protocol.launch import Gone, RefuseReason, RunState
from cronward.protocol.outcome import Status
from cronward.protocol.views import CancelAnswer, JobView, RemoveAnswer, ServiceStatus
from tests.support.scheduler_bench import LAUNCHER, Bench, Refusal

CAPACITY = 3
LIVE = ("queued", "active")
NO_FAULT = ("interrupted", "launch_lost", "cancelled", "terminated", "abandoned")
LEGAL = {
    ("queued", "active"),
    ("queued", "skipped"),
    ("active", "ok"),
    ("active", "error"),
    ("active", "skipped"),
}


@contextlib.contextmanager
def unless_removed() -> Iterator[None]:
    """One-shots remove themselves, so a job that the model knows may be gone."""
    try:
        yield
    except Refusal as refused:
        if refused.code != "CRON_JOB_NOT_FOUND":
            raise


class Ledger(RuleBasedStateMachine):
    jobs = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self._directory = tempfile.TemporaryDirectory()
        self._job_ids = mock.patch.object(ids, "new_job_id", map("job-{}".format, itertools.count()).__next__)
        self._job_ids.start()  # so that a run of this machine can be repeated
        self.bench = Bench(Path(self._directory.name), Config(capacity=Capacity(runs=CAPACITY)))
        self.bench.accepting = False
        self.held: dict[str, None] = {}
        """Runs that an executor really has."""
        self.done: dict[str, bytes | None] = {}
        """Runs that are really over, with their outcome if there is one."""
        self.lost: set[str] = set()
        """Launches that never reached an executor."""
        self.seen: dict[str, tuple[object, ...]] = {}
        """The rows as they were after the last step."""
        self.counters: dict[str, tuple[int, int]] = {}
        self.given = 0
        self.boots = 0
        self.reconcile()

    def teardown(self) -> None:
        self.bench.close()
        self._job_ids.stop()
        self._directory.cleanup()

    # the launcher, as it really is

    def new_launches(self) -> list[str]:
        fresh = [sent.run for sent in self.bench.launches[self.given :]]
        self.given = len(self.bench.launches)
        return fresh

    def take_launches(self) -> None:
        """What arrived is handed to executors."""
        for run_id in self.new_launches():
            self.held[run_id] = None
            self.bench.ports.batch.launch.append((LAUNCHER, launch.encode(launch.Accepted(run_id, 1))))

    def truth(self, run_id: str) -> RunState:
        if run_id in self.held:
            return RunState.HELD
        return RunState.OVER if run_id in self.done else RunState.ABSENT

    def reconcile(self) -> None:
        """A launcher registers, tells what is true, and reports what is over."""
        self.lost.update(self.new_launches())
        welcome = self.bench.register()
        runs = {name: self.truth(name) for name in welcome.active}
        self.bench.tell(launch.Inventory(welcome.instance, welcome.epoch, runs))
        for name in welcome.active:
            if name in self.done:
                self.bench.tell(self.exited(name))

    def exited(self, run_id: str) -> launch.Exited:
        body = self.done[run_id]
        return launch.Exited(run_id, Gone.REPORTED if body else Gone.INTERRUPTED, body)

    # what happens

    @initialize(target=jobs)
    def begin_with_some_jobs(self) -> MultipleResults[JobView]:
        jobs = [self.bench.every(every_ms) for every_ms in (1000, 1000, 1000, 2000, 5000)]
        self.time_passes(1000)
        return multiple(*jobs, self.bench.at(1000))

    @rule(target=jobs, every_s=st.sampled_from([1, 7, 60]), enabled=st.booleans())
    def add_recurring(self, every_s: int, enabled: bool) -> JobView:
        return self.bench.every(every_s * 1000, enabled=enabled)

    @rule(target=jobs, in_s=st.integers(0, 90), keep=st.booleans())
    def add_one_shot(self, in_s: int, keep: bool) -> JobView:
        return self.bench.at(in_s * 1000, deleteAfterRun=not keep)

    @rule(seconds=st.integers(1, 3))
    def some_seconds_pass(self, seconds: int) -> None:
        for _ in range(seconds):
            self.time_passes(1000)

    @rule(ms=st.sampled_from([0, 5, 900, 7000, 61_000]))
    def time_passes(self, ms: int) -> None:
        self.bench.turn(ms)
        self.take_launches()
        self.bench.turns(2)
        self.take_launches()

    @rule(job=jobs, mode=st.sampled_from(["force", "due", "if-enabled"]))
    def run_by_hand(self, job: JobView, mode: str) -> None:
        with unless_removed():
            self.bench.run_now(job, mode)

    @rule(job=jobs, patch=st.sampled_from(["on", "off", "faster", "once", "payload"]), cancel=st.booleans())
    def edit(self, job: JobView, patch: str, cancel: bool) -> None:
        fields: dict[str, object] = {
            "on": {"enabled": True},
            "off": {"enabled": False},
            "faster": {"schedule": {"kind": "every", "everyMs": 3000}, "deleteAfterRun": None},
            "once": {"schedule": {"kind": "at", "at": str(self.bench.clock.wall + 5000)}},
            "payload": {"payload": {"argv": ["/bin/other"]}},
        }
        with unless_removed():
            was_on = self.bench.job(job).enabled
            try:
                self.bench.ask("cron.update", JobView, {"id": job.id, "patch": fields[patch], "cancel": cancel})
            except Refusal as refusal:
                if refusal.error.details.get("field") != "schedule.at" or patch != "on":
                    raise
                assert not self.bench.job(job).enabled  # a one-shot that is over
                return
            if patch == "on" and not was_on:
                self.counters[job.id] = (0, self.counters.get(job.id, (0, 0))[1])

    @rule(job=consumes(jobs))
    def remove(self, job: JobView) -> None:
        with unless_removed():
            self.bench.ask("cron.remove", RemoveAnswer, {"id": job.id})

    @precondition(lambda self: self.held)
    @rule(data=st.data(), status=st.sampled_from(Status), told=st.sampled_from(["executor", "launcher", "nobody"]))
    def a_task_ends(self, data: st.DataObject, status: Status, told: str) -> None:
        run_id = data.draw(st.sampled_from(list(self.held)))
        del self.held[run_id]
        reason = outcome.Reason.EXIT_CODE if status is not Status.OK else None
        self.done[run_id] = outcome.encode(self.bench.outcome(run_id, status, reason))
        if told == "executor":
            self.bench.report(run_id, status, reason)
        elif told == "launcher":
            self.bench.tell(self.exited(run_id))

    @rule(statuses=st.lists(st.sampled_from(Status), min_size=3, max_size=3), repeat=st.booleans())
    def all_tasks_end(self, statuses: list[Status], repeat: bool) -> None:
        """The usual case, some of it reported twice."""
        for run_id, status in zip(list(self.held), statuses, strict=False):
            del self.held[run_id]
            reason = outcome.Reason.EXIT_CODE if status is not Status.OK else None
            self.done[run_id] = outcome.encode(self.bench.outcome(run_id, status, reason))
            for _ in range(2 if repeat else 1):
                self.bench.report(run_id, status, reason)
        self.bench.turns(2)
        self.take_launches()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def an_executor_dies(self, data: st.DataObject) -> None:
        run_id = data.draw(st.sampled_from(list(self.held)))
        del self.held[run_id]
        self.done[run_id] = None
        self.bench.tell(self.exited(run_id))

    @precondition(lambda self: self.done)
    @rule(data=st.data(), contradict=st.booleans())
    def it_is_told_again(self, data: st.DataObject, contradict: bool) -> None:
        run_id = data.draw(st.sampled_from(list(self.done)))
        if contradict:
            self.bench.report(run_id, Status.ERROR, outcome.Reason.SIGNAL)
        else:
            self.bench.tell(self.exited(run_id))

    @rule()
    def launches_are_refused(self) -> None:
        self.bench.turn()
        for run_id in self.new_launches():
            self.lost.add(run_id)
            self.bench.tell(launch.Refused(run_id, RefuseReason.SPAWN_FAILED))

    @rule(data=st.data(), abandon=st.booleans())
    def cancel(self, data: st.DataObject, abandon: bool) -> None:
        known = list(self.seen)
        if known:
            run_id = data.draw(st.sampled_from(known))
            self.bench.ask("run.cancel", CancelAnswer, {"runId": run_id, "abandon": abandon})

    @rule()
    def the_launcher_is_replaced(self) -> None:
        """Launches that are on their way die with it."""
        self.bench.turn()
        self.reconcile()

    @rule(ms=st.sampled_from([0, 5000, 120_000]))
    def the_launcher_is_silent(self, ms: int) -> None:
        self.bench.turn(ms, silent=True)
        self.bench.turn(1000, silent=True)
        self.lost.update(self.new_launches())
        if self.bench.world.link.state != "ready":
            self.reconcile()

    @rule(pause=st.booleans())
    def pause_or_resume(self, pause: bool) -> None:
        self.bench.ask("service.pause" if pause else "service.resume", ServiceStatus)

    @rule(reboot=st.booleans(), ms=st.sampled_from([0, 30_000]))
    def the_scheduler_is_killed(self, reboot: bool, ms: int) -> None:
        if reboot:
            self.boots += 1
            self.bench.boot_id = f"boot-{self.boots}"
            for run_id in self.held:
                self.done[run_id] = None
            self.held.clear()
        self.bench.crash()
        self.bench.turn(ms)
        self.reconcile()

    # what always holds

    @invariant()
    def everything_that_always_holds(self) -> None:
        self.rows_go_forward_and_terminal_ones_stay()
        self.counters_are_the_history()
        self.one_live_run_per_job()
        self.nothing_is_launched_twice()
        self.a_slot_is_one_run()
        self.capacity_holds()
        self.only_what_never_started_is_lost()
        self.deadlines_lie_ahead_once_decided()

    def one_live_run_per_job(self) -> None:
        query = "SELECT job_id FROM runs WHERE state IN ('queued', 'active') GROUP BY job_id HAVING count(*) > 1"
        assert self.bench.sql(query) == []

    def nothing_is_launched_twice(self) -> None:
        launched = [sent.run for sent in self.bench.launches]
        assert len(launched) == len(set(launched))

    def a_slot_is_one_run(self) -> None:
        query = "SELECT job_id, slot_ms FROM runs WHERE kind = 'scheduled' GROUP BY 1, 2 HAVING count(*) > 1"
        assert self.bench.sql(query) == []

    def capacity_holds(self) -> None:
        assert list(self.bench.states().values()).count("active") <= CAPACITY

    def only_what_never_started_is_lost(self) -> None:
        lost = {str(row[0]) for row in self.bench.sql("SELECT run_id FROM runs WHERE reason = 'launch_lost'")}
        assert lost <= self.lost

    def rows_go_forward_and_terminal_ones_stay(self) -> None:
        query = """SELECT run_id, state, reason, message, started_ms, ended_ms, outcome, job_id, activated_ms, kind
                   FROM runs ORDER BY arrival"""
        now: dict[str, tuple[object, ...]] = {str(row[0]): row[1:] for row in self.bench.sql(query)}
        assert self.seen.keys() <= now.keys()
        for run_id, row in now.items():
            before = self.seen.get(run_id)
            state_before = before[0] if before else "queued"
            if state_before not in LIVE:
                assert row == before
            elif row[0] != state_before:
                # Between two looks a run may have taken two steps.
                assert (state_before, row[0]) in LEGAL or (state_before == "queued" and row[7] is not None)
                self.count(row)
        self.seen = now

    def count(self, row: tuple[object, ...]) -> None:
        """What a run that has just ended does to its job, by the rule in one sentence: a result counts unless the
        service or a person ended the run, and a queued run that was taken back leaves nothing."""
        state, reason, job_id, activated_ms = row[0], row[1], str(row[6]), row[7]
        started = activated_ms is not None or reason == "not_due"
        if state in LIVE or not started or reason in NO_FAULT:
            return
        errors, skipped = self.counters.get(job_id, (0, 0))
        self.counters[job_id] = {"ok": (0, 0), "error": (errors + 1, 0), "skipped": (0, skipped + 1)}[str(state)]

    def counters_are_the_history(self) -> None:
        query = "SELECT job_id, consecutive_errors, consecutive_skipped FROM jobs JOIN job_state USING (position)"
        for job_id, errors, skipped in self.bench.sql(query):
            assert (errors, skipped) == self.counters.get(str(job_id), (0, 0))

    def deadlines_lie_ahead_once_decided(self) -> None:
        world = self.bench.world
        if world.mode == "running" and world.caught_up:
            self.bench.turns(2)
            now = self.bench.clock.wall
            assert self.bench.sql("SELECT count(*) FROM job_state WHERE next_due_ms <= ?", now) == [(0,)]
            forgotten = (
                "SELECT count(*) FROM jobs JOIN job_state USING (position) WHERE enabled AND next_due_ms IS NULL"
            )
            assert self.bench.sql(forgotten + " AND schedule_kind = 'every'") == [(0,)]


TestLedger = Ledger.TestCase
TestLedger.settings = settings(
    max_examples=60,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
