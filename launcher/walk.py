"""The background walk: finds, a few directories at a time, what nobody asked about."""

import os
from collections.abc import Callable, Iterator

from cronward.launcher.control_groups import ControlGroups
from cronward.launcher.forgetting import Forgetting
from cronward.launcher.judgement import open_lock, read_intent, try_lock
from cronward.launcher.live import LiveRun
from cronward.protocol import log
from cronward.protocol.rundir import FORGET_PREFIX, NEW_PREFIX, Damaged

ENTRIES_PER_STEP = 50
STEP_MS = 1000
PAUSE_MS = 60_000


class Walk:
    """`is_known` says of a run whether it is being followed already; `adopt` takes a run that is held and is not."""

    def __init__(
        self,
        root: str,
        forgetting: Forgetting,
        control_groups: ControlGroups,
        is_known: Callable[[str], bool],
        adopt: Callable[[LiveRun], None],
    ) -> None:
        self._root = root
        self._forgetting = forgetting
        self._control_groups = control_groups
        self._is_known = is_known
        self._adopt = adopt
        self._entries: Iterator[os.DirEntry[str]] | None = None

    def step(self, now_ms: int) -> int:
        """Duty: looks at the next few directories; a round is followed by a pause."""
        if self._entries is None:
            self._control_groups.remove_empty()
            self._entries = os.scandir(self._root)
        for _ in range(ENTRIES_PER_STEP):
            entry = next(self._entries, None)
            if entry is None:
                self._entries = None
                return PAUSE_MS
            self._visit(entry)
        return STEP_MS

    def _visit(self, entry: os.DirEntry[str]) -> None:
        if entry.name.startswith((NEW_PREFIX, FORGET_PREFIX)):
            self._forgetting.doom(entry.path)
        else:
            try:
                if self._is_held(entry.path):
                    self._find(entry.path)
            except (OSError, Damaged) as error:
                log.warning("launcher.strange_directory", f"{entry.path} cannot be judged: {error}")

    def _is_held(self, path: str) -> bool:
        lock_fd = open_lock(path)
        try:
            return not try_lock(lock_fd)
        finally:
            os.close(lock_fd)

    def _find(self, path: str) -> None:
        intent = read_intent(path)
        if not self._is_known(intent.run):
            log.info("run.found", "a held run that nobody asked about is adopted", run=intent.run)
            self._adopt(LiveRun.of(intent, path))
