"""One job on the bench, followed through slots, runs and edits."""

from collections.abc import Mapping

from cronward.protocol.outcome import Reason, Status
from cronward.protocol.views import JobView
from tests.support.scheduler_bench import Bench


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
