"""One job on the bench, followed through slots, runs and edits."""

from collections.abc import Mapping

from cronward.protocol.outcome import Reason, Status
from cronward.protocol.views import JobView, WhyView
from cronward.schedule.at import parse_at
from tests.support.scheduler_bench import Bench


def pass_to(bench: Bench, instant: str) -> None:
    """Time until an instant (ISO 8601), in which nothing comes due."""
    bench.turn(parse_at(instant) - bench.clock.wall)


def restart_at(bench: Bench, instant: str) -> None:
    """The scheduler has been dead since the last turn, and is there again."""
    bench.clock.advance(parse_at(instant) - bench.clock.wall)
    bench.crash()
    bench.reconcile()
    bench.turns()


def end_all(bench: Bench) -> None:
    """Every active run ends well."""
    for run_id, state in bench.states().items():
        if state == "active":
            bench.report(run_id)


class Followed:
    """A job. Times are ms after the moment at which it was made."""

    def __init__(self, bench: Bench, schedule: Mapping[str, object], **fields: object) -> None:
        self.bench = bench
        self.zero_ms = bench.clock.wall
        self.view = bench.add(schedule, **fields)

    @property
    def now(self) -> JobView:
        return self.bench.job(self.view)

    @property
    def due(self) -> tuple[str, int] | None:
        """(kind, time) of its deadline."""
        state = self.now.state
        return None if state.next_run_at_ms is None else (state.due_kind, state.next_run_at_ms - self.zero_ms)

    @property
    def next_ms(self) -> int | None:
        """Its deadline as epoch ms."""
        return self.now.state.next_run_at_ms

    def slots(self) -> list[int]:
        """The slot of every run as epoch ms, oldest first."""
        return [self.zero_ms + slot_ms for slot_ms, _ in self.runs()]

    def why(self, at_ms: int | None = None) -> WhyView:
        """What became of its slot at an instant (epoch ms), or of the last one."""
        asked = {"id": self.view.id} if at_ms is None else {"id": self.view.id, "atMs": at_ms}
        return self.bench.ask("cron.why", WhyView, asked)

    def runs(self) -> list[tuple[int, str]]:
        """(slot, state) of every run, oldest first."""
        rows = self.bench.sql("SELECT slot_ms, state FROM runs WHERE job_id = ? ORDER BY arrival", self.view.id)
        return [(int(str(slot)) - self.zero_ms, str(state)) for slot, state in rows]

    def decisions(self) -> list[tuple[str, int, int]]:
        """(decision, first slot, until) of slots that are no run of their own."""
        query = "SELECT decision, slot_ms, until_ms FROM slot_decisions WHERE job_id = ? ORDER BY position"
        rows = self.bench.sql(query, self.view.id)
        return [
            (str(name), int(str(slot)) - self.zero_ms, int(str(until)) - self.zero_ms) for name, slot, until in rows
        ]

    def go_to(self, ms: int) -> None:
        """Time passes, looked after each second or so."""
        while (left := self.zero_ms + ms - self.bench.clock.wall) > 0:
            self.bench.turn(min(left, 1_000))
        self.bench.turns(2)

    def end(self, status: Status = Status.OK, reason: Reason | None = None) -> None:
        """Its active run ends."""
        ((run_id,),) = self.bench.sql("SELECT run_id FROM runs WHERE job_id = ? AND state = 'active'", self.view.id)
        self.bench.report(str(run_id), status, reason)

    def fail(self, reason: Reason = Reason.EXIT_CODE) -> None:
        self.end(Status.ERROR, reason)

    def edit(self, **patch: object) -> JobView:
        return self.bench.ask("cron.update", JobView, {"id": self.view.id, "patch": patch})

    def reschedule(self) -> JobView:
        return self.bench.ask("cron.update", JobView, {"id": self.view.id, "reschedule": True})
