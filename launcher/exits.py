"""Reports that a run is over, kept until the scheduler has recorded them."""

from collections.abc import Callable

from cronward.protocol import failpoints
from cronward.protocol.launch import Exited

RESEND_MS = 1000
BATCH = 200
"""Reports of one turn: after a long absence of the scheduler there may be thousands."""


class Exits:
    """The outbox of Exited. Lost with the process; the next launcher judges the same directories again."""

    def __init__(self, send: Callable[[Exited], bool]) -> None:
        self._send = send
        self._unacknowledged: dict[str, Exited] = {}
        self._sent_ms: dict[str, int] = {}

    def add(self, exited: Exited) -> None:
        """Reports with the next `resend`. A second report of a run says the same and changes nothing."""
        self._unacknowledged.setdefault(exited.run, exited)

    def get(self, run: str) -> Exited | None:
        return self._unacknowledged.get(run)

    def acknowledge(self, run: str) -> None:
        self._unacknowledged.pop(run, None)
        self._sent_ms.pop(run, None)

    def resend(self, now_ms: int) -> None:
        """Sends what was not sent within the last second."""
        batch = BATCH
        for run, exited in self._unacknowledged.items():
            if run in self._sent_ms and now_ms - self._sent_ms[run] < RESEND_MS:
                continue
            if batch == 0:
                return
            failpoints.hit("launcher.before_exited")
            if not self._send(exited):
                return
            batch -= 1
            self._sent_ms[run] = now_ms
