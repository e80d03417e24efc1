"""The scheduler's five sockets: binding them with the right modes, waiting, taking batches, sending."""

import contextlib
import grp
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import zmq

from cronward.protocol import control, launch, locks, log, run, sockets
from cronward.protocol.paths import Paths
from cronward.scheduler.caller import from_peer_address
from cronward.scheduler.effects import Address
from cronward.scheduler.launcher_door import LauncherDoor
from cronward.scheduler.outbox import Outbox
from cronward.scheduler.requests import Arrived

ANSWER_HIGH_WATER_MARK = 128
TAKE_MAX = 128
"""Messages taken from one socket per turn."""


class Batch(msgspec.Struct):
    """What arrived, in the order in which it is applied: executors first, they hold capacity."""

    run: list[tuple[Address, bytes]] = []
    launch: list[tuple[Address, bytes]] = []
    requests: list[Arrived] = []

    def singles(self) -> Iterator["Batch"]:
        """The same as batches of one."""
        yield from (Batch(run=[message]) for message in self.run)
        yield from (Batch(launch=[message]) for message in self.launch)
        yield from (Batch(requests=[arrived]) for arrived in self.requests)


class Ports:
    """Bound sockets. The caller holds the runtime directory's lock."""

    def __init__(self, paths: Paths, group: str, wakeup_fd: int) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._paths = paths
        self._group = group
        self._wakeup_fd = wakeup_fd
        self._launcher_door = LauncherDoor(paths.launcher_lock)
        self._bind()

    def _bind(self) -> None:
        gid = _gid(self._group)
        self._paths.status.mkdir(mode=0o700, exist_ok=True)
        before = os.umask(0o177)
        try:
            self.run = self._router(self._paths.run, run.MESSAGE_MAX_BYTES)
            self.launch = self._router(self._paths.launch, launch.MESSAGE_MAX_BYTES)
            self._control = self._router(self._paths.control, control.REQUEST_MAX_BYTES, ANSWER_HIGH_WATER_MARK)
            os.umask(0o117 if gid is not None else 0o177)
            self._query = self._router(self._paths.query, control.REQUEST_MAX_BYTES, ANSWER_HIGH_WATER_MARK)
            self._events = sockets.publisher(self._context, str(self._paths.events))
        finally:
            os.umask(before)
        if gid is not None:
            _open_to_group(self._paths, gid)
        self._inodes = {path: path.stat().st_ino for path in self._socket_paths()}
        self._outboxes = {
            "control": Outbox(self._control, "control"),
            "query": Outbox(self._query, "query"),
        }
        self._poller = zmq.Poller()
        for socket in (self.run, self.launch, self._control, self._query):
            self._poller.register(socket, zmq.POLLIN)
        self._poller.register(self._wakeup_fd, zmq.POLLIN)

    def _router(self, path: Path, max_bytes: int, mark: int = sockets.HIGH_WATER_MARK) -> zmq.Socket[bytes]:
        return sockets.router(self._context, str(path), max_bytes, mark)

    def _socket_paths(self) -> tuple[Path, ...]:
        paths = self._paths
        return (paths.run, paths.launch, paths.control, paths.query, paths.events)

    def ensure_own(self) -> None:
        """Binds again if somebody removed or replaced a socket file. Our sockets hold their inodes: while they are
        open, no other file has the same number."""
        for path, inode in self._inodes.items():
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == inode:
                    continue
            log.error("sockets.lost", "a socket file was removed or replaced; binding again", path=str(path))
            self._paths.runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._paths.runtime_lock.exists():
                locks.acquire(self._paths.runtime_lock)  # with the directory went the name of the lock that we hold
            self._close_sockets()
            self._bind()
            return

    def wait(self, timeout_ms: int) -> None:
        """Until something arrives, a signal comes, or the time is over; shorter while answers wait for slow peers."""
        if any(outbox.is_waiting for outbox in self._outboxes.values()):
            timeout_ms = min(timeout_ms, 20)
        if self._poller.poll(timeout_ms):
            with contextlib.suppress(BlockingIOError):
                os.read(self._wakeup_fd, 4096)

    def take(self) -> Batch:
        """A bounded batch of what is there."""
        batch = Batch()
        for frames in sockets.drain(self.run, TAKE_MAX):
            batch.run.append((frames[:-1], frames[-1]))
        for arrived in _take("launch", self.launch):
            if self._launcher_door.admits(from_peer_address(arrived.peer_address).pid):
                batch.launch.append((arrived.address, arrived.body))
        batch.requests += _take("control", self._control)
        batch.requests += _take("query", self._query)
        return batch

    def is_full(self, arrived: Arrived) -> bool:
        return self._outboxes[arrived.socket].is_full(arrived.address)

    def answer(self, socket: str, address: Address, body: bytes) -> None:
        self._outboxes[socket].send(address, body)

    def flush(self) -> None:
        for outbox in self._outboxes.values():
            outbox.flush()

    def publish(self, body: bytes) -> None:
        with contextlib.suppress(zmq.Again):  # numbered: subscribers see the gap
            self._events.send(body, zmq.DONTWAIT)

    def close(self) -> None:
        """Gives what was sent a moment to leave."""
        self._close_sockets(linger_ms=200)
        self._context.term()

    def _close_sockets(self, linger_ms: int = 0) -> None:
        for socket in (self.run, self.launch, self._control, self._query, self._events):
            socket.close(linger_ms)


def _take(name: str, socket: zmq.Socket[bytes]) -> Iterator[Arrived]:
    """What is there, with the senders' credentials."""
    for _ in range(TAKE_MAX):
        try:
            frames = socket.recv_multipart(zmq.DONTWAIT, copy=False)
        except zmq.Again:
            return
        try:
            peer: str | None = str(frames[-1].get("Peer-Address"))
        except zmq.ZMQError:
            peer = None
        yield Arrived(name, [frame.bytes for frame in frames[:-1]], frames[-1].bytes, peer)


def _gid(group: str) -> int | None:
    """The group that may read the status sockets, if it exists and this process may give files to it."""
    try:
        gid = grp.getgrnam(group).gr_gid
    except KeyError:
        log.debug("status.no_group", "the group for the status sockets does not exist; only the owner reads them")
        return None
    return gid if os.geteuid() == 0 or gid in os.getgroups() else None


def _open_to_group(paths: Paths, gid: int) -> None:
    """The group may pass through the runtime directory and use what is in status/, nothing else."""
    for path, mode in ((paths.runtime, 0o710), (paths.status, 0o750)):
        os.chown(path, -1, gid)
        path.chmod(mode)
    for path in (paths.query, paths.events):
        os.chown(path, -1, gid)
