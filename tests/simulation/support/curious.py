"""Somebody who asks `why`, again and again, about slots of a moment ago, of days ago and to come."""

import math

from cronward.protocol import job as jobs
from cronward.protocol.control import WhyParams
from cronward.schedule import around
from cronward.scheduler import why_command
from cronward.scheduler.world import Turn
from tests.simulation.support.machine import Machine
from tests.simulation.support.scenario import DAY_MS, HOUR_MS, SECOND_MS
from tests.simulation.support.seen import Explained

EVERY_MS = 8 * HOUR_MS
QUESTIONS = 6
"""At a time."""


class Curious:
    """Asks while there is a scheduler. To ask changes nothing."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._random = machine.scenario.random("curious")

    def plan(self) -> None:
        """From now on, for ever."""
        self._machine.agenda.after(self._random.randrange(2 * EVERY_MS), self._ask)

    def _ask(self) -> None:
        scheduler = self._machine.scheduler
        if scheduler.is_up:
            now_ms = self._machine.clock.wall_ms()
            known = {
                str(job_id): jobs.decode(str(definition)).schedule
                for job_id, definition in scheduler.query("SELECT job_id, definition FROM jobs ORDER BY position")
            }
            decided = scheduler.query("SELECT job_id, slot_ms, until_ms FROM slot_decisions ORDER BY position")
            for job_id in self._random.choices(list(known), k=QUESTIONS) if known else []:
                self._ask_about(job_id, known[job_id], self._near_ms(now_ms))
            for row in self._random.choices(decided, k=QUESTIONS) if decided else []:
                decided_of, first_ms, last_ms = map(str, row)
                if decided_of in known:
                    near_ms = self._random.randint(int(first_ms), int(last_ms))
                    self._ask_about(decided_of, known[decided_of], near_ms)
        self.plan()

    def _near_ms(self, now_ms: int) -> int:
        """Some seconds or some days ago, or to come."""
        distance_ms = round(math.exp(self._random.uniform(math.log(SECOND_MS), math.log(5 * DAY_MS))))
        return now_ms + distance_ms * (1 if self._random.random() < 0.1 else -1)

    def _ask_about(self, job_id: str, schedule: jobs.Schedule, near_ms: int) -> None:
        """About a slot of the schedule as it is now; at times about any instant."""
        machine, at_ms = self._machine, near_ms
        if self._random.random() < 0.9:
            at_ms = around.previous_slot_ms(schedule, job_id=job_id, before_ms=near_ms + 1) or near_ms
        turn = Turn(machine.scheduler.world, machine.scheduler.store)
        said = why_command.explain(turn, WhyParams(id=job_id, at_ms=at_ms))
        run_id = said.run.run_id if said.run else None
        at_ms = said.asked_ms if said.slot_ms is None else said.slot_ms
        machine.see(Explained(job_id, at_ms, turn.now_ms, said.cause, run_id, said.since_ms, said.until_ms))
