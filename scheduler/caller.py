"""Who sent a request: the peer's credentials from the socket, and whom a host says that it acts for."""

import msgspec


class Caller(msgspec.Struct, frozen=True):
    """`uid` and `pid` are the kernel's word (unix(7), SO_PEERCRED); `acting_for` is the host's."""

    uid: int | None
    pid: int | None
    acting_for: str | None = None

    def __str__(self) -> str:
        if self.acting_for is not None:
            return self.acting_for
        return "unknown" if self.uid is None else f"uid {self.uid}"


def from_peer_address(address: str | None, acting_for: str | None = None) -> Caller:
    """ZeroMQ's metadata `Peer-Address` of an ipc peer ends with uid:gid:pid."""
    parts = (address or "").split(":")[-3:]
    if len(parts) == 3 and all(part.isdigit() for part in parts):
        return Caller(int(parts[0]), int(parts[2]), acting_for)
    return Caller(None, None, acting_for)
