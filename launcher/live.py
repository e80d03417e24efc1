"""A run that was handed over and whose end this launcher has not seen."""

import msgspec

from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.rundir import Intent


class LiveRun(msgspec.Struct):
    """What is needed to watch one run, own or adopted. Times are monotonic ms, `deadline_ms` None means none.

    `cancel_ms`, `terminated_ms` and `reported_ms` say since when the run is cancelled, its executor has SIGTERM from
    the backstop, its saved outcome is reported although the lock is held.
    """

    run: str
    directory: str
    executor: ProcessIdentity | None
    deadline_ms: int | None
    grace_ms: int
    cleanup_ms: int
    cancel_ms: int | None = None
    terminated_ms: int | None = None
    reported_ms: int | None = None

    @classmethod
    def of(cls, intent: Intent, directory: str) -> "LiveRun":
        limits = intent.limits
        return cls(intent.run, directory, intent.executor, intent.deadline_mono_ms, limits.grace_ms, limits.cleanup_ms)
