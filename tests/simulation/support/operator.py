"""People and hosts: they make jobs, edit them there and back, switch, remove, run by hand, cancel and pause."""

from collections.abc import Callable

from tests.simulation.support.machine import Machine
from tests.simulation.support.scenario import DAY_MS, HOUR_MS, SECOND_MS, draw_payload, draw_rules, draw_schedule

Params = dict[str, object]


class Operator:
    """Asks; what is refused, or asked while nobody answers, is not asked again."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._random = machine.scenario.random("operator")

    def plan(self) -> None:
        """The jobs at once, everything else over the days."""
        scenario = self._machine.scenario
        over_ms = round(scenario.days * DAY_MS)
        for index in range(scenario.jobs):
            self._machine.agenda.after(self._random.randrange(1 + index), self.add)
        actions = self._actions()
        for _ in range(round(scenario.edits_per_job * scenario.jobs * scenario.days)):
            action = self._random.choices(list(actions), list(actions.values()))[0]
            self._machine.agenda.after(self._random.randrange(over_ms), action)
        for _ in range(round(scenario.pauses * scenario.days)):
            self._machine.agenda.after(self._random.randrange(over_ms), self.pause)

    def _actions(self) -> dict[Callable[[], None], float]:
        """With how often each is done."""
        return {
            self.add: 1,
            self.remove: 1,
            self.reschedule: 3,
            self.there_and_back: 2,
            self.edit_payload: 2,
            self.switch: 4,
            self.compute_anew: 1,
            self.run_by_hand: 5,
            self.cancel: 2,
            self.reconfigure: 0.3,
        }

    def add(self) -> None:
        now_ms = self._machine.clock.wall_ms()
        schedule = draw_schedule(self._random, now_ms)
        definition: Params = {"schedule": schedule, "payload": draw_payload(self._random)}
        if schedule["kind"] == "at" and self._random.random() < 0.5:
            definition["deleteAfterRun"] = self._random.random() < 0.5
        if self._random.random() < 0.3:
            definition |= draw_rules(self._random)
        self._ask("cron.add", definition)

    def remove(self) -> None:
        self._on_a_job("cron.remove", {})

    def reschedule(self) -> None:
        self._patch({"schedule": draw_schedule(self._random, self._machine.clock.wall_ms())})

    def there_and_back(self) -> None:
        """Disabled and enabled again within moments, perhaps while it runs."""
        job = self._a_job()
        pause_ms = self._random.choice((0, 1, 50, 30 * SECOND_MS))
        for number, enabled in enumerate((False, True)):
            self._later(number * pause_ms, "cron.update", {"id": job, "patch": {"enabled": enabled}})

    def edit_payload(self) -> None:
        self._patch({"payload": draw_payload(self._random)})

    def switch(self) -> None:
        """Off, and usually on again after a while."""
        job = self._a_job()
        cancel = self._random.random() < 0.3
        self._later(0, "cron.update", {"id": job, "patch": {"enabled": False}, "cancel": cancel})
        if self._random.random() < 0.9:
            pause_ms = self._random.randrange(2 * DAY_MS)
            self._later(pause_ms, "cron.update", {"id": job, "patch": {"enabled": True}})

    def compute_anew(self) -> None:
        self._on_a_job("cron.update", {"patch": {}, "reschedule": True})

    def run_by_hand(self) -> None:
        self._on_a_job("cron.run", {"mode": self._random.choice(("force", "due", "if-enabled"))})

    def cancel(self) -> None:
        live = self._machine.scheduler.query(
            "SELECT run_id FROM runs WHERE state IN ('queued', 'active') ORDER BY arrival"
        )
        if live:
            run = str(self._random.choice(live)[0])
            self._ask("run.cancel", {"runId": run, "abandon": self._random.random() < 0.1})

    def pause(self) -> None:
        self._ask("service.pause", {})
        self._later(self._random.randrange(6 * HOUR_MS), "service.resume", {})

    def resume(self) -> None:
        self._ask("service.resume", {})

    def reconfigure(self) -> None:
        self._machine.scheduler.reconfigure(self._random.choice((1, 2, 4, 8, 16, 40)))

    def _patch(self, patch: Params) -> None:
        self._on_a_job("cron.update", {"patch": patch})

    def _on_a_job(self, method: str, params: Params) -> None:
        self._ask(method, {"id": self._a_job(), **params})

    def _a_job(self) -> str:
        jobs = self._machine.scheduler.query("SELECT job_id FROM jobs ORDER BY position")
        return str(self._random.choice(jobs)[0]) if jobs else "none"

    def _later(self, ms: int, method: str, params: Params) -> None:
        self._machine.agenda.after(ms, lambda: self._ask(method, params))

    def _ask(self, method: str, params: Params) -> None:
        scheduler = self._machine.scheduler
        self._machine.say("operator", f"{method} {params}")
        if (scheduler.is_up and not self._machine.calm) or (scheduler.is_up and method == "service.resume"):
            scheduler.ask(method, params)
