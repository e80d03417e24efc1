"""A simulated launcher: its side of the handshake, the runs' directories, and what it must do about each run."""

from collections.abc import Callable

from cronward.protocol import launch
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.launch import GatewayState, Gone, PoolState, RefuseReason, RunState
from tests.simulation.support.executor import Phase, SimulatedExecutor
from tests.simulation.support.machine import Machine

REGISTER_MS, INVENTORY_MS, HEARTBEAT_MS, EXITED_MS = 1000, 1000, 2000, 5000
ABSENT_RETRY_MS = 20_000
"""Instead of each second while there is no scheduler to hear it."""


class SimulatedLauncher:
    """One process after the other over the same directories. What it keeps in memory goes with a process."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._random = machine.scenario.random("launcher")
        self.tasks = 0
        self._processes = 0
        self.directories: dict[str, SimulatedExecutor] = {}
        self.is_up = False
        self.is_stalled = False

    # processes

    def start(self) -> None:
        if self.is_up:
            return
        self._processes += 1
        self.address = [b"launcher-%d" % self._processes]
        self.is_up = True
        self._stalled: list[launch.ToLauncher] = []
        self.is_stalled = False
        self._epoch: tuple[str, int] = ("", 0)
        self._registered = self._reconciled = self._leaving = False
        self._waiting: dict[str, launch.Launch] = {}
        self._refused: dict[str, launch.Refused] = {}
        self._exited: dict[str, launch.Exited] = {}
        self._beat_ms = 0
        self._machine.say("launcher", f"starts process {self._processes}")
        self._repeat(self._register, REGISTER_MS)

    def crash(self) -> None:
        self.is_up = False
        self._machine.say("launcher", "is gone")

    def leave(self) -> None:
        """An orderly hand-over: a last word, and the end once it is answered."""
        if self.is_up and self._registered:
            self._leaving = True
            self._say(launch.Leaving(*self._epoch))
        self._machine.agenda.after(2000, self._later(self.crash))

    def stall(self) -> None:
        """Stopped: hears and says nothing until it goes on."""
        self.is_stalled = True

    def go_on(self) -> None:
        self.is_stalled = False
        if not self.is_up:
            return
        messages, self._stalled = self._stalled, []
        for message in messages:
            self.hear(message)

    def _later(self, action: Callable[[], None]) -> Callable[[], None]:
        """`action`, if this process still lives then."""
        process = self._processes

        def act() -> None:
            if self.is_up and self._processes == process:
                action()

        return act

    def _repeat(self, action: Callable[[], bool], every_ms: int) -> None:
        """Does it now and again until it says that it is done."""

        def step() -> None:
            if self.is_stalled or not action():
                pause_ms = every_ms if self._machine.scheduler.is_up else ABSENT_RETRY_MS
                self._machine.agenda.after(pause_ms, self._later(step))

        step()

    # saying

    def _say(self, message: launch.FromLauncher) -> None:
        self._machine.from_launcher(self.address, message)

    def _register(self) -> bool:
        if not self._registered:
            self._say(launch.Register(ProcessIdentity(self._processes, 1, self._machine.boot_id), "0"))
        return self._registered

    def beat(self) -> None:
        """Each two seconds; time that was passed over has one beat at its end."""
        if not self.is_up or self.is_stalled or not self._registered or self._leaving:
            return
        now_ms = self._machine.clock.mono_ms()
        if now_ms - self._beat_ms >= HEARTBEAT_MS and self._machine.scheduler.is_up:
            self._beat_ms = now_ms
            beat = launch.Heartbeat(*self._epoch, GatewayState.NONE, PoolState())
            self._machine.scheduler.hear_launcher(self.address, launch.encode(beat))

    def _inventory(self, active: list[str]) -> Callable[[], bool]:
        epoch = self._epoch
        runs = {run: self._look(run) for run in active}

        def say() -> bool:
            if self._reconciled or self._epoch != epoch or not self._registered:
                return True
            self._say(launch.Inventory(*epoch, runs))
            return False

        return say

    def _look(self, run: str) -> RunState:
        executor = self.directories.get(run)
        if executor is None:
            return RunState.WAITING if run in self._waiting else RunState.ABSENT
        if executor.phase is not Phase.FREE:
            return RunState.HELD
        self._report_gone(run)
        return RunState.SETTLING if executor.outcome is None else RunState.OVER

    def notice_gone(self, run: str) -> Callable[[], None]:
        """What a launcher does when a run's lock is free and nobody acknowledged its outcome."""

        def notice() -> None:
            if self.is_up and run in self.directories and not self.directories[run].recorded:
                self._report_gone(run)

        return notice

    def _report_gone(self, run: str) -> None:
        """Told until it is acknowledged."""
        if run in self._exited:
            return
        saved = self.directories[run].outcome
        how = Gone.INTERRUPTED if saved is None else Gone.REPORTED
        self._exited[run] = exited = launch.Exited(run, how, saved)

        def say() -> bool:
            if run not in self._exited:
                return True
            if self._registered:
                self._say(exited)
            return False

        self._repeat(say, EXITED_MS)

    # hearing

    def hear(self, message: launch.ToLauncher) -> None:
        if self.is_stalled:
            self._stalled.append(message)
            return
        match message:
            case launch.Welcome() | launch.Reconciled() | launch.RegisterAgain() | launch.Left():
                self._hear_of_epochs(message)
            case launch.Launch():
                self._receive(message)
            case launch.Ack():
                self._exited.pop(message.run, None)
            case launch.Cancel():
                self._cancel(message)
            case launch.Forget():
                self._forget(message.runs)
            case launch.Beat() | launch.Configure():
                pass

    def _hear_of_epochs(self, message: launch.Welcome | launch.Reconciled | launch.RegisterAgain | launch.Left) -> None:
        match message:
            case launch.Welcome():
                self._enter(message)
            case launch.Reconciled():
                self._reconciled = self._reconciled or (message.instance, message.epoch) == self._epoch
            case launch.RegisterAgain():
                self._register_again()
            case launch.Left() if self._leaving:
                self.crash()

    def _enter(self, message: launch.Welcome) -> None:
        if self._leaving or (message.instance == self._epoch[0] and message.epoch <= self._epoch[1]):
            return
        self._epoch = (message.instance, message.epoch)
        self._registered, self._reconciled = True, False
        self._beat_ms = self._machine.clock.mono_ms()
        self._repeat(self._inventory(message.active), INVENTORY_MS)

    def _register_again(self) -> None:
        if self._leaving:
            self.crash()
        elif self._registered:
            self._registered = False
            self._repeat(self._register, REGISTER_MS)

    def _receive(self, message: launch.Launch) -> None:
        run = message.run
        if run in self._refused:
            self._say(self._refused[run])
        elif run in self.directories:
            self._say(launch.Accepted(run, 1))
        elif run in self._waiting:
            pass
        elif (message.instance, message.epoch) != self._epoch:
            self._refuse(run, RefuseReason.STALE_EPOCH)
        elif self._random.random() < self._machine.scenario.refusal and not self._machine.calm:
            self._refuse(run, RefuseReason.SPAWN_FAILED)
        else:
            self._waiting[run] = message
            wait_ms = self._random.choice((0, 0, 1, 5, 300))
            self._machine.agenda.after(wait_ms, self._later(lambda: self._hand_over(run)))

    def _hand_over(self, run: str) -> None:
        if self.is_stalled:
            self._machine.agenda.after(500, self._later(lambda: self._hand_over(run)))
            return
        message = self._waiting.pop(run, None)
        if message is None:
            return
        self.tasks += 1
        self.directories[run] = SimulatedExecutor(self._machine, run, message.job, self.tasks)
        self._say(launch.Accepted(run, self.tasks))

    def _refuse(self, run: str, reason: RefuseReason) -> None:
        self._refused[run] = launch.Refused(run, reason)
        self._say(self._refused[run])

    def _cancel(self, message: launch.Cancel) -> None:
        if self._waiting.pop(message.run, None) is not None:
            self._refuse(message.run, RefuseReason.CANCELLED)
        elif message.run in self.directories:
            self.directories[message.run].cancel()

    def _forget(self, runs: list[str]) -> None:
        gone = []
        for run in runs:
            executor = self.directories.get(run)
            if executor is None or executor.phase is Phase.FREE:
                self.directories.pop(run, None)
                self._exited.pop(run, None)
                gone.append(run)
        if gone:
            self._say(launch.Forgotten(gone))
