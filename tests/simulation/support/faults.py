"""What goes wrong, and when: drawn in advance for the whole of a simulation."""

import math
from collections.abc import Callable

from tests.simulation.support.executor import Phase
from tests.simulation.support.machine import Machine
from tests.simulation.support.scenario import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

DIRECTORY_LOST = 0.3
"""Chance that a run's directory was not on disk yet when the machine went down."""


class Faults:
    """Plans faults, and ends them all."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._random = machine.scenario.random("faults")

    def plan(self) -> None:
        scenario = self._machine.scenario
        over_ms = round(scenario.days * DAY_MS)
        for rate, fault in (
            (scenario.scheduler_crashes, self._scheduler),
            (scenario.launcher_crashes, self._launcher),
            (scenario.launcher_leaves, self._leave),
            (scenario.launcher_stalls, self._stall),
            (scenario.reboots, self._reboot),
            (scenario.clock_steps, self._step),
            (scenario.suspends, self._suspend),
        ):
            for _ in range(round(rate * scenario.days)):
                self._machine.agenda.after(self._random.randrange(over_ms), self._unless_over(fault))

    def heal(self) -> None:
        """No fault any more, and everything is up."""
        machine = self._machine
        machine.calm = machine.network.perfect = True
        machine.launcher.go_on()
        machine.launcher.start()
        machine.scheduler.start_if_down()
        machine.scheduler.wake = True

    def _unless_over(self, fault: Callable[[], None]) -> Callable[[], None]:
        def happen() -> None:
            if not self._machine.calm:
                fault()

        return happen

    def _log_uniform(self, low_ms: int, high_ms: int) -> int:
        """Short is as likely as long, on every scale."""
        return round(low_ms * math.exp(self._random.random() * math.log(high_ms / low_ms)))

    def _scheduler(self) -> None:
        """It is killed, or stops in good order; it comes back after a moment or some hours."""
        if self._machine.scheduler.is_up:
            if self._random.random() < 0.3:
                self._machine.scheduler.end()
            else:
                self._machine.scheduler.kill("is killed")
        self._machine.agenda.after(self._log_uniform(500, 8 * HOUR_MS), self._machine.scheduler.start_if_down)

    def _launcher(self) -> None:
        if self._machine.launcher.is_up:
            self._machine.launcher.crash()
        self._machine.agenda.after(self._log_uniform(200, 3 * HOUR_MS), self._machine.launcher.start)

    def _leave(self) -> None:
        self._machine.launcher.leave()
        self._machine.agenda.after(self._log_uniform(3 * SECOND_MS, HOUR_MS), self._machine.launcher.start)

    def _stall(self) -> None:
        if self._machine.launcher.is_up:
            self._machine.launcher.stall()
            self._machine.agenda.after(self._log_uniform(SECOND_MS, 5 * MINUTE_MS), self._machine.launcher.go_on)

    def _reboot(self) -> None:
        """Every process is gone, and with it what was not on disk. The kernel is another one."""
        machine = self._machine
        machine.say("machine", "goes down")
        machine.scheduler.kill("goes with the machine")
        machine.launcher.crash()
        for run, executor in list(machine.launcher.directories.items()):
            if executor.phase is not Phase.FREE:
                executor.crash()
                if not executor.recorded and self._random.random() < DIRECTORY_LOST:
                    del machine.launcher.directories[run]
        machine.boots += 1
        down_ms = self._log_uniform(20 * SECOND_MS, 6 * HOUR_MS)
        machine.agenda.after(down_ms, machine.scheduler.start_if_down)
        machine.agenda.after(down_ms + self._random.randrange(5000), machine.launcher.start)

    def _step(self) -> None:
        """Somebody or NTP sets the clock, by milliseconds or by days."""
        ms = self._log_uniform(20, 2 * DAY_MS) * self._random.choice((-1, 1))
        self._machine.say("machine", f"clock set by {ms} ms")
        self._machine.clock.step(ms)
        self._machine.scheduler.wake = True

    def _suspend(self) -> None:
        """Nobody runs; the monotonic clock does not count it."""
        ms = self._log_uniform(MINUTE_MS, 2 * DAY_MS)
        self._machine.say("machine", f"was suspended for {ms} ms")
        self._machine.clock.step(ms)
        self._machine.scheduler.wake = True
