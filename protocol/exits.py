"""Exit codes of every Cronward process. A supervisor should not restart a process that ends with a PERMANENT one."""

OK = 0
ERROR = 1
"""A command failed, as it says on standard error."""
USAGE = 2
"""Wrong flags or arguments (the codes of click and sh)."""
CONFIG = 78
"""The configuration cannot be used (EX_CONFIG)."""
UNREACHABLE = 69
"""No scheduler answers (EX_UNAVAILABLE)."""
ALREADY_RUNNING = 75
"""Another process holds the state or runtime directory, or the file of our lock is gone (EX_TEMPFAIL)."""
STATE_DIR = 73
"""The state or runtime directory cannot be used: read-only, wrong owner (EX_CANTCREAT)."""
DATABASE = 65
"""The database cannot be opened: corrupt, foreign, newer than this release (EX_DATAERR)."""
STORAGE = 74
"""An I/O error while running, or a disk that is full at the start: a restart recovers (EX_IOERR)."""
INTERNAL = 70
"""A bug (EX_SOFTWARE)."""
INTERRUPTED = 130
"""Ended by Ctrl-C."""

PERMANENT = frozenset({CONFIG, STATE_DIR, DATABASE, USAGE})
"""Starting again changes nothing until somebody acts."""
