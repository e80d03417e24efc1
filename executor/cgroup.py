"""Entering a control group of one's own, so that the launcher can end everything in it after a crash."""

from cronward.protocol import log
from cronward.protocol.cgroup import executor_cgroup, own_cgroup
from cronward.protocol.identity import ProcessIdentity


def enter_own(identity: ProcessIdentity) -> None:
    """Moves this process, and so all its later children, into its group. Where cgroup2 is missing or not delegated,
    everything works without: the launcher then finds processes by descent."""
    try:
        parent = own_cgroup()
        if parent is None:
            return
        group = executor_cgroup(identity, parent)
        group.mkdir()
        (group / "cgroup.procs").write_text("0")
    except OSError as error:
        log.debug("executor.no_cgroup", f"no control group of its own: {error}")
