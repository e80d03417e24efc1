"""What this launcher knows of a run: from memory, and for a run that it never heard of from its directory."""

import os
from collections.abc import Callable

from cronward.launcher.exits import Exits
from cronward.launcher.judgement import read_intent
from cronward.launcher.launches import Launches
from cronward.launcher.live import LiveRun
from cronward.launcher.pool import Pool
from cronward.launcher.run_directories import RunDirectories
from cronward.launcher.settlement import Settlements
from cronward.launcher.watch import Watch
from cronward.protocol import log
from cronward.protocol.launch import RunState
from cronward.protocol.rundir import Damaged


class KnownRuns:
    """The one answer to "what of this run?"; `grace_ms` is used for runs whose intent is damaged."""

    def __init__(
        self,
        directories: RunDirectories,
        launches: Launches,
        pool: Pool,
        watch: Watch,
        settlements: Settlements,
        exits: Exits,
        grace_ms: Callable[[], int],
    ) -> None:
        self._directories = directories
        self._launches = launches
        self._pool = pool
        self._watch = watch
        self._settlements = settlements
        self._exits = exits
        self._grace_ms = grace_ms

    def remembered(self, run: str) -> RunState | None:
        """From memory alone."""
        if run in self._launches:
            return RunState.WAITING
        if self._pool.holder(run) is not None or run in self._watch:
            return RunState.HELD
        if (exited := self._exits.get(run)) is not None:
            return RunState.OVER if exited.outcome is not None else RunState.SETTLING
        return RunState.SETTLING if run in self._settlements else None

    def is_known(self, run: str) -> bool:
        return self.remembered(run) is not None

    def state_of(self, run: str) -> RunState:
        """From memory, else from the directory; a run found there is followed from now on."""
        remembered = self.remembered(run)
        if remembered is not None:
            return remembered
        path = self._directories.path(run)
        if not _exists(path):
            return RunState.ABSENT
        self._watch.add(self._live_from_directory(run, path))
        return self.remembered(run) or RunState.SETTLING

    def executor_pid(self, run: str) -> int:
        """The executor of a held run; 0 if its intent is damaged."""
        holder = self._pool.holder(run)
        live = holder.live if holder else self._watch.get(run)
        return live.executor.pid if live and live.executor else 0

    def _live_from_directory(self, run: str, path: str) -> LiveRun:
        try:
            return LiveRun.of(read_intent(path), path)
        except (OSError, Damaged) as problem:
            log.error("run.damaged", f"a run is followed by its lock alone: {problem}", run=run)
            return LiveRun(run, path, None, None, self._grace_ms(), 0)


def _exists(path: str) -> bool:
    """True also if it cannot be told: absence is a proof that a run never started."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("run.unreadable", f"{path}: {error}")
    return True
