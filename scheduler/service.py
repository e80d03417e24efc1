"""One life of the scheduler: locks, database, sockets, signals, the loop, and an orderly end."""

import errno
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path

import apsw
import zmq

from cronward.protocol import config as configs
from cronward.protocol import exits, ids, locks, log
from cronward.protocol.clock import Clock
from cronward.protocol.errors import Code, StartupError
from cronward.protocol.identity import boot_id
from cronward.protocol.notify import Notifier
from cronward.protocol.paths import Paths
from cronward.protocol.version import VERSION
from cronward.scheduler import life
from cronward.scheduler.actor import Actor
from cronward.scheduler.database import close_database, open_database
from cronward.scheduler.ports import Ports
from cronward.scheduler.settings import Settings
from cronward.scheduler.store import StorageBlocked, StorageFailed, Store
from cronward.scheduler.world import Turn, World

LAUNCH_ANSWERS_MS = 3_000
"""How long a stopping scheduler waits for answers to launches in flight; later ones are asked for by the next."""


class Service:
    """Starts in the order of its constructor; `run` returns the exit code."""

    def __init__(self, paths: Paths, settings: Settings, clock: Clock, notifier: Notifier) -> None:
        self._clock = clock
        self._notifier = notifier
        self._stop_requested = False
        self._reload_requested = False
        self._watchdog_mono_ms = clock.mono_ms()
        self._lock_fd = take_locks(paths)
        self._lock_checked_mono_ms = clock.mono_ms()
        notifier.send("EXTEND_TIMEOUT_USEC=600000000", "STATUS=opening the database")
        self._connection = open_database(paths.database)
        self._store = Store(self._connection)
        self._world = World(
            paths=paths,
            clock=clock,
            settings=settings,
            instance=ids.new_instance(),
            boot_id=boot_id(),
            secret_key=_secret_key(paths.secret_key),
        )
        self._begin_life()
        self._ports = _bind(paths, settings.config.status.group, self._catch_signals())
        self._actor = Actor(self._world, self._store, self._ports)

    def run(self) -> int:
        """Turns until a signal asks to stop."""
        self._notifier.ready("running")
        log.info("scheduler.ready", "the scheduler is ready", instance=self._world.instance, version=VERSION)
        try:
            while not self._stop_requested and not self._has_lost_lock():
                self._actor.turn(self._check_signals)
            self._finish_launches()
        except StorageFailed as error:
            log.error("storage.failed", "the database failed; exiting, the next start recovers", error=str(error))
            self._ports.close()
            return exits.STORAGE
        self._end_life()
        self._ports.close()
        log.info("scheduler.stopped", "the scheduler has stopped; runs go on", instance=self._world.instance)
        return exits.OK if self._stop_requested else exits.ALREADY_RUNNING

    def _has_lost_lock(self) -> bool:
        """Without its file the lock keeps nobody out; the next start makes it anew, or finds who has taken it."""
        if self._clock.mono_ms() - self._lock_checked_mono_ms < locks.CHECK_MS:
            return False
        self._lock_checked_mono_ms = self._clock.mono_ms()
        path = self._world.paths.scheduler_lock
        if not locks.is_lost(path, self._lock_fd):
            return False
        log.error(
            "lock.lost", "the lock's file was removed or replaced; exiting, the next start locks it", path=str(path)
        )
        return True

    def _end_life(self) -> None:
        """What cannot be written now is only that the end was orderly: the next start checks the database."""
        try:
            self._store.begin()
            life.end(Turn(self._world, self._store))
            self._store.commit()
            close_database(self._connection)
        except (StorageBlocked, StorageFailed, apsw.Error) as error:
            log.warning("storage.unclean_end", "the end could not be written to the database", error=str(error))

    def _begin_life(self) -> None:
        """The first transaction. Raises StartupError if it cannot be written."""
        try:
            self._store.begin()
            life.begin(Turn(self._world, self._store))
            self._store.commit()
        except (StorageBlocked, StorageFailed) as error:
            path = self._world.paths.database
            code = error.code if isinstance(error, StorageBlocked) else Code.STORAGE_FAILED
            message = f"cannot write the database {path}: {error}"
            raise StartupError(code, exits.STORAGE, message, path=str(path)) from error

    def _catch_signals(self) -> int:
        """Handlers only note what is wanted; the descriptor wakes the loop."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        self._wakeup = (reader, writer)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._note_stop)
        signal.signal(signal.SIGHUP, self._note_reload)
        return reader.fileno()

    def _note_stop(self, number: int, frame: object) -> None:
        self._stop_requested = True

    def _note_reload(self, number: int, frame: object) -> None:
        self._reload_requested = True

    def _check_signals(self) -> None:
        if self._reload_requested:
            self._reload_requested = False
            mono_us = self._clock.mono_ms() * 1000
            self._notifier.send("RELOADING=1", f"MONOTONIC_USEC={mono_us}")
            self._actor.reload()
            self._notifier.send("READY=1")
        watchdog_ms = self._notifier.watchdog_ms
        if watchdog_ms is not None and self._clock.mono_ms() - self._watchdog_mono_ms >= watchdog_ms:
            self._watchdog_mono_ms = self._clock.mono_ms()
            self._notifier.send("WATCHDOG=1")

    def _finish_launches(self) -> None:
        """A launch in flight is answered, so that the ledger knows; no run is touched."""
        self._notifier.send("STOPPING=1", "STATUS=waiting for launches in flight")
        self._actor.stop()
        give_up_mono_ms = self._clock.mono_ms() + LAUNCH_ANSWERS_MS
        while self._actor.unanswered and self._clock.mono_ms() < give_up_mono_ms:
            self._actor.turn(self._check_signals)


def _bind(paths: Paths, group: str, wakeup_fd: int) -> Ports:
    try:
        return Ports(paths, group, wakeup_fd)
    except (OSError, zmq.ZMQError) as error:
        raise StartupError(
            Code.RUNTIME_DIR_UNUSABLE, exits.STATE_DIR, f"cannot bind sockets in {paths.runtime}: {error}"
        ) from error


def take_locks(paths: Paths) -> int:
    """Makes both directories, and this process their only scheduler; the descriptor of the state directory's lock.
    Raises StartupError naming the holder."""
    fds = []
    for directory, lock, code in (
        (paths.state, paths.scheduler_lock, Code.STATE_DIR_UNUSABLE),
        (paths.runtime, paths.runtime_lock, Code.RUNTIME_DIR_UNUSABLE),
    ):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fds.append(locks.acquire(lock))
        except locks.Held as error:
            holder = error.holder
            raise StartupError(
                Code.ALREADY_RUNNING,
                exits.ALREADY_RUNNING,
                f"another scheduler uses {directory}: {error}",
                pid=holder.pid if holder else None,
            ) from None
        except OSError as error:
            # Space may come back by itself; whatever else it is, somebody has to act.
            exit_code = exits.STORAGE if error.errno in (errno.ENOSPC, errno.EDQUOT) else exits.STATE_DIR
            raise StartupError(code, exit_code, f"cannot use {directory}: {error.strerror or error}") from error
    return fds[0]


def _secret_key(path: Path) -> bytes:
    """The key of run secrets, made at the first start."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StartupError(Code.STATE_DIR_UNUSABLE, exits.STATE_DIR, f"cannot read {path}: {error}") from error
    try:
        fd = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(fd, os.urandom(32))
        os.fsync(fd)
        os.close(fd)
        os.rename(f"{path}.new", path)
    except OSError as error:
        raise StartupError(Code.STATE_DIR_UNUSABLE, exits.STATE_DIR, f"cannot write {path}: {error}") from error
    return path.read_bytes()


def load_settings(environ: Mapping[str, str], config: str | None) -> Settings:
    """Settings for a start. Raises ConfigError; a file that was named has to exist."""
    path = configs.config_path(environ, config)
    named = configs.is_named(environ, config)
    return Settings(path, environ, configs.load(path, environ, must_exist=named), must_exist=named)
