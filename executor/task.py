"""The started command of one run: its processes, the answer of its set-up, its output."""

import os
from collections.abc import Callable

import msgspec

from cronward.executor.command import Started, SwitchReply
from cronward.executor.loop import Loop
from cronward.executor.masking import Masker
from cronward.executor.output import Output
from cronward.executor.phases import Event
from cronward.executor.process_tree import ProcessTree
from cronward.executor.steps import SetupFailed
from cronward.executor.switch_user import TRANSPORT
from cronward.protocol.clock import Clock
from cronward.protocol.outcome import Reason, Stream

_REPLY_MAX_BYTES = 4 * 1024 * 1024


class Task:
    """Reads what comes from a command and tells its run. Decides nothing."""

    def __init__(self, started: Started, loop: Loop, clock: Clock, emit: Callable[[Event], None]) -> None:
        self.tree = ProcessTree(started.pid)
        self.streams = [Stream(), Stream()]
        self.last_output_ms = clock.mono_ms()
        self._loop = loop
        self._clock = clock
        self._emit = emit
        self._pipes = [started.stdout_fd, started.stderr_fd]
        self._secret_values = started.secret_values
        self._outputs: list[Output] = []
        self._ended_outputs = 0
        self._reply = b""
        self._setup_fd = started.setup_fd
        if self._setup_fd is not None:
            loop.watch(self._setup_fd, self.read_setup)

    # the answer of a leader that switches its user

    @property
    def in_setup(self) -> bool:
        return self._setup_fd is not None

    def read_setup(self) -> None:
        """Takes what the leader has answered so far."""
        if self._setup_fd is None:
            return
        try:
            chunk = os.read(self._setup_fd, 64 * 1024)
        except BlockingIOError:
            return
        self._reply += chunk
        if not chunk or len(self._reply) > _REPLY_MAX_BYTES:
            self.close_setup()
            self._emit(Event.SETUP_REPLY)

    def close_setup(self) -> None:
        if self._setup_fd is not None:
            self._loop.unwatch(self._setup_fd)
            os.close(self._setup_fd)
            self._setup_fd = None

    def check_setup(self) -> None:
        """After SETUP_REPLY. Raises SetupFailed if the command was not reached."""
        try:
            replies = [msgspec.json.decode(line, type=SwitchReply) for line in self._reply.splitlines()]
        except msgspec.DecodeError:
            replies = []
        for reply in replies:
            if reply.reason is not None:
                raise SetupFailed(reply.reason, reply.message, reply.exit_code)
            self._secret_values += tuple(value.encode(TRANSPORT) for value in reply.secrets)
        if not replies:
            raise SetupFailed(Reason.SETUP_FAILED, "the process that switches users ended unexpectedly")

    # output

    def capture(self, directory: str, names: tuple[str, str], max_bytes: int) -> None:
        """Begins to read the output; not before all secrets are known. `names` are the files for stdout and stderr."""
        for fd, name in zip(self._pipes, names, strict=True):
            output = Output(fd, f"{directory}/{name}", max_bytes, Masker(self._secret_values))
            self._outputs.append(output)
            self._loop.watch(fd, self._reader(output))
        self._pipes = []

    @property
    def outputs_over(self) -> bool:
        """Whether nothing more can come (also if nothing was ever captured)."""
        return self._ended_outputs == len(self._outputs)

    @property
    def written(self) -> tuple[int, int]:
        """Bytes on stdout and stderr so far."""
        stdout, stderr = self._outputs
        return stdout.written, stderr.written

    @property
    def over_limit(self) -> bool:
        return any(output.over_limit for output in self._outputs)

    def close_outputs(self) -> None:
        """Ends the capture, and fills `streams`."""
        for index, output in enumerate(self._outputs):
            if output.open:
                self._loop.unwatch(output.fd)
            self.streams[index] = output.close()
        for fd in self._pipes:
            os.close(fd)
        self._outputs, self._pipes, self._ended_outputs = [], [], 0

    def _reader(self, output: Output) -> Callable[[], None]:
        def read() -> None:
            if output.read():
                self.last_output_ms = self._clock.mono_ms()
                self._emit(Event.OUTPUT)
                return
            self._loop.unwatch(output.fd)
            self._ended_outputs += 1
            if self.outputs_over:
                self._emit(Event.OUTPUT_OVER)

        return read
