"""The launcher: one loop that listens to the scheduler, to executors, to the kernel and to the clock."""

import os
import signal
from typing import assert_never

import zmq

from cronward.launcher.control_groups import ControlGroups
from cronward.launcher.exits import Exits
from cronward.launcher.forgetting import Forgetting
from cronward.launcher.gateway import make_probe, same_gateway
from cronward.launcher.guard import Guard
from cronward.launcher.judgement import Free
from cronward.launcher.known_runs import KnownRuns
from cronward.launcher.launches import Launches
from cronward.launcher.link import Link
from cronward.launcher.live import LiveRun
from cronward.launcher.orders import Orders
from cronward.launcher.pool import Pool
from cronward.launcher.readiness import Readiness
from cronward.launcher.run_directories import RunDirectories
from cronward.launcher.session import Say, Session, State
from cronward.launcher.settlement import Settlements
from cronward.launcher.signals import Signals
from cronward.launcher.spawner import Spawner
from cronward.launcher.timers import Timers
from cronward.launcher.walk import Walk
from cronward.launcher.watch import Watch
from cronward.protocol import exits, launch, locks, log, pair
from cronward.protocol.cgroup import own_cgroup
from cronward.protocol.clock import Clock
from cronward.protocol.identity import own_identity
from cronward.protocol.launch import LauncherConfig
from cronward.protocol.notify import Notifier
from cronward.protocol.paths import Paths
from cronward.protocol.version import VERSION

MESSAGES_PER_TURN = 256


class Launcher:
    """Owns everything that the loop turns. The caller holds the launcher's lock."""

    def __init__(
        self,
        paths: Paths,
        lock_fd: int,
        config: LauncherConfig,
        socket: zmq.Socket[bytes],
        spawner: Spawner,
        clock: Clock,
        notifier: Notifier,
    ) -> None:
        self._lock = paths.launcher_lock, lock_fd
        self._exit_code = exits.OK
        self._clock = clock
        self._config = config
        self._notifier = notifier
        self._identity = own_identity()
        self._link = Link(socket)
        self._session = Session()
        self._readiness = Readiness(socket, self._link.monitor)
        self._signals = Signals(self._readiness)
        self._gateway = make_probe(config, self._readiness, clock)
        self._exits = Exits(self._link.send)
        self._watch = Watch(self._readiness, self._released)
        self._pool = Pool(spawner, self._readiness, clock, self._freed, self._watch.add)
        directories = RunDirectories(str(paths.runs))
        groups = ControlGroups(own_cgroup())
        self._settlements = Settlements(groups, self._exits.add, self._grace_ms)
        self._launches = Launches(directories, self._pool, clock, self._link.answer)
        known = KnownRuns(
            directories, self._launches, self._pool, self._watch, self._settlements, self._exits, self._grace_ms
        )
        forgetting = Forgetting(directories, known.is_known)
        self._orders = Orders(
            self._session,
            self._link,
            clock,
            known,
            self._launches,
            self._pool,
            self._watch,
            self._exits,
            forgetting,
            lambda: self._gateway.state,
            self._configure,
        )
        self._timers = Timers(
            clock,
            self._pool.tend,
            self._watch.try_all,
            self._settlements.step,
            Guard(self._pool, self._watch, self._exits.add).step,
            self._launches.expire,
            self._launches.probe,
            forgetting.delete_some,
            Walk(directories.root, forgetting, groups, known.is_known, self._watch.add).step,
            lambda now_ms: self._gateway.tend(now_ms),
            self._feed_watchdog,
            self._check_lock,
        )
        self._configure(config)

    def run(self) -> int:
        """Turns until this launcher has left; the exit code."""
        self._notifier.ready("registering with the scheduler")
        while self._session.state is not State.LEFT or len(self._launches) > 0:
            self._turn()
        log.info("launcher.left", "the launcher ends; runs go on", runs=len(self._watch) + len(self._pool.busy()))
        return self._exit_code

    def _turn(self) -> None:
        self._readiness.wait(self._timers.wait_ms())
        self._obey_signals()
        if self._link.connected():
            self._session.connected()
        for message in self._link.receive(MESSAGES_PER_TURN):
            self._orders.handle(message)
        self._launches.start()
        self._pool.grow(len(self._launches))
        self._timers.run()
        self._exits.resend(self._clock.mono_ms())
        self._speak()
        self._link.flush()

    def _obey_signals(self) -> None:
        signals = self._signals.take()
        if signal.SIGCHLD in signals:
            self._reap()
        if signals & {signal.SIGTERM, signal.SIGINT}:
            log.info("launcher.leaving", "asked to end; runs go on")
            self._leave()

    def _leave(self) -> None:
        self._notifier.send("STOPPING=1")
        self._session.stop(self._clock.mono_ms())
        self._pool.configure(0, self._config.executors_max)

    def _check_lock(self, now_ms: int) -> int:
        """Without its file the lock keeps nobody out; the next start makes it anew, or finds who has taken it."""
        path, fd = self._lock
        if self._exit_code == exits.OK and locks.is_lost(path, fd):
            log.error("lock.lost", "the lock's file was removed or replaced; leaving, runs go on", path=str(path))
            self._exit_code = exits.ALREADY_RUNNING
            self._leave()
        return locks.CHECK_MS

    def _reap(self) -> None:
        """As a subreaper the launcher also gets what dead executors left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._pool.reap(pid, status)

    def _freed(self, live: LiveRun, free: pair.Free) -> None:
        """Unless the scheduler acknowledged the outcome to the executor, the directory tells what it was."""
        if not free.acknowledged:
            self._watch.add(live, "its executor gave the run up")

    def _released(self, live: LiveRun, how: str, verdict: Free) -> None:
        self._settlements.begin(live.run, how, verdict, reported=live.reported_ms is not None)

    def _speak(self) -> None:
        session = self._session
        for say in session.due(self._clock.mono_ms()):
            match say:
                case Say.REGISTER:
                    self._link.send(launch.Register(self._identity, VERSION))
                case Say.INVENTORY:
                    self._link.send(launch.Inventory(session.instance, session.epoch, self._orders.inventory))
                case Say.HEARTBEAT:
                    self._link.send(self._heartbeat())
                case Say.LEAVING:
                    if not self._link.send(launch.Leaving(session.instance, session.epoch)):
                        session.give_up()
                case _:
                    assert_never(say)

    def _heartbeat(self) -> launch.Heartbeat:
        cannot_start = self._launches.cannot_start or (self._pool.failure if self._pool.is_dead() else None)
        pool = self._pool.state(len(self._watch), len(self._launches))
        return launch.Heartbeat(self._session.instance, self._session.epoch, self._gateway.state, pool, cannot_start)

    def _feed_watchdog(self, now_ms: int) -> int:
        self._notifier.send("WATCHDOG=1")
        return self._notifier.watchdog_ms or 60_000

    def _grace_ms(self) -> int:
        return self._config.grace_ms

    def _configure(self, config: LauncherConfig) -> None:
        old, self._config = self._config, config
        self._pool.configure(config.ready, config.executors_max)
        if not same_gateway(old, config):
            self._gateway.close()
            self._gateway = make_probe(config, self._readiness, self._clock)
