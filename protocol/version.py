"""The release and the wire version. Constants, because importlib.metadata costs an executor 30 ms at start."""

VERSION = "0.1.0"
"""Release, the same as in pyproject.toml (a test compares them)."""

WIRE = 1
"""Version of the `launch` and `run` messages and of the run directory; peers of WIRE - 1 are accepted."""
