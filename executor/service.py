"""The executor between and around its runs: takes one from the launcher, serves it, says when it is free again."""

import os
import signal
import socket
import sys
from collections import deque

import msgspec

from cronward.executor import small_file
from cronward.executor.command import Launchpad
from cronward.executor.lifecycle import Released, Run, Tools
from cronward.executor.loop import Loop
from cronward.executor.phases import Event
from cronward.executor.reporter import Reporter
from cronward.protocol import failpoints, log, pair
from cronward.protocol.clock import Clock
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.pair import CancelRun, Free, FromExecutor, HandOver, Ready, Unfit
from cronward.protocol.run import HelloAnswer, Recorded

_FD_BYTES = 4
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class Service:
    """One executor. `signals_fd` is the reading end of the signal wakeup pipe, `pair_socket` is non-blocking."""

    def __init__(
        self, pair_socket: socket.socket, signals_fd: int, reporter: Reporter, launchpad: Launchpad, clock: Clock
    ) -> None:
        self._pair = pair_socket
        self._signals_fd = signals_fd
        self._reporter = reporter
        self._clock = clock
        self._loop = Loop()
        self._tools = Tools(self._loop, clock, reporter, launchpad)
        self._run: Run | None = None
        self._handed_over: deque[tuple[HandOver, int]] = deque()
        self._closing = False
        self._fit = True

    def serve(self, identity: ProcessIdentity) -> None:
        """Says Ready, carries out runs, and returns when the launcher has closed the pair and no run is held."""
        self._loop.watch(self._pair.fileno(), self._read_pair)
        self._loop.watch(self._signals_fd, self._read_signals)
        self._loop.watch(self._reporter.socket, self._read_scheduler)
        self._loop.watch(self._reporter.monitor, self._read_monitor)
        self._tell_launcher(Ready(identity))
        while not (self._closing and self._run is None):
            self._loop.turn(self._wait_ms())
            self._act_on_deadlines()
            self._go_on()

    def _wait_ms(self) -> int | None:
        moments = [self._reporter.next_ms(), self._run.deadlines.next_ms() if self._run else None]
        next_ms = min((moment for moment in moments if moment is not None), default=None)
        return None if next_ms is None else max(0, next_ms - self._clock.mono_ms())

    def _act_on_deadlines(self) -> None:
        now_ms = self._clock.mono_ms()
        self._reporter.tick(now_ms)
        while self._run is not None and (due := self._run.deadlines.pop_due(now_ms)) is not None:
            self._run.handle(due)

    def _go_on(self) -> None:
        """Leaves a run that is over, and begins the next one that was handed over."""
        if self._run is not None and self._run.released is not None:
            self._free(self._run.released)
            self._run = None
        while self._run is None and self._handed_over:
            hand_over, lock_fd = self._handed_over.popleft()
            self._run = Run(hand_over, lock_fd, self._tools)
            self._run.begin()

    def _free(self, released: Released) -> None:
        self._fit = self._fit and released.clean
        failpoints.hit("executor.before_free")
        self._tell_launcher(Free(released.run, released.acknowledged, self._fit, _rss_kib()))

    # what can be read

    def _read_pair(self) -> None:
        """One packet a turn. The pair is read to its end: a run that is in it when it closes is run."""
        try:
            data, ancillary, _, _ = self._pair.recvmsg(
                pair.PACKET_MAX_BYTES, socket.CMSG_SPACE(_FD_BYTES), socket.MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, ConnectionResetError):
            # The reset says that the launcher ended without reading all of ours; its packets to us come after it.
            return
        fds = [int.from_bytes(body[:_FD_BYTES], sys.byteorder) for _, _, body in ancillary]
        if not data:
            self._loop.unwatch(self._pair.fileno())
            self._closing = True
            return
        try:
            packet = pair.decode_to_executor(data)
        except msgspec.DecodeError as error:
            log.error("executor.bad_packet", f"a packet of the launcher cannot be decoded: {error}")
            self._close(fds)
            return
        match packet:
            case HandOver():
                self._take(packet, fds)
            case CancelRun():
                self._close(fds)
                self._cancel(packet.run, packet.why)

    def _take(self, hand_over: HandOver, fds: list[int]) -> None:
        if not fds:
            # Without its lock nobody could tell that the run lives.
            log.error("executor.no_lock", "a run came without its lock and is not begun", run=hand_over.run)
            self._fit = False
            self._tell_launcher(Free(hand_over.run, acknowledged=False, fit=False, rss_kib=_rss_kib()))
            return
        self._handed_over.append((hand_over, fds[0]))

    def _read_scheduler(self) -> None:
        for message in self._reporter.receive():
            match message:
                case HelloAnswer():
                    self._reporter.answered()
                    if message.cancel is not None:
                        self._cancel(message.run, message.cancel)
                case Recorded():
                    self._emit(Event.RECORDED)

    def _read_monitor(self) -> None:
        if self._reporter.connected():
            self._emit(Event.CONNECTED)

    def _read_signals(self) -> None:
        numbers = set(os.read(self._signals_fd, 4096))
        if signal.SIGCHLD in numbers:
            self._emit(Event.CHILD_ENDED)
        if signal.SIGTERM in numbers:
            self._terminate()

    def _terminate(self) -> None:
        if self._run is None and self._fit:
            self._tell_launcher(Unfit("terminated"))
        self._fit = False
        self._emit(Event.TERMINATE)

    def _cancel(self, run: str, why: str) -> None:
        if self._run is not None and self._run.id == run and self._run.released is None:
            self._run.cancel(why)

    def _emit(self, event: Event) -> None:
        if self._run is not None and self._run.released is None:
            self._run.handle(event)

    # what is said

    def _tell_launcher(self, packet: FromExecutor) -> None:
        """Never blocks: the launcher owes a packet for each of ours, so the socket's buffer holds them all."""
        try:
            self._pair.send(pair.encode(packet))
        except (BrokenPipeError, ConnectionResetError):
            log.debug("executor.no_launcher", "the launcher is gone; another one adopts by the lock")

    @staticmethod
    def _close(fds: list[int]) -> None:
        for fd in fds:
            os.close(fd)


def _rss_kib() -> int:
    return int(small_file.read("/proc/self/statm", 256).split()[1]) * _PAGE_KIB
