"""What executors say about the runs that they hold."""

import hmac

import msgspec

from cronward.protocol import ids, log, outcome, run
from cronward.protocol.outcome import Reason
from cronward.scheduler import ledger
from cronward.scheduler.effects import Address
from cronward.scheduler.rows import RunRow, find_run
from cronward.scheduler.world import ExecutorPeer, Turn


def handle(turn: Turn, address: Address, message: run.FromExecutor) -> None:
    """One message of an executor."""
    match message:
        case run.Hello():
            _hello(turn, address, message)
        case run.Progress():
            _progress(turn, address, message)
        case run.Report():
            _report(turn, address, message)


def _hello(turn: Turn, address: Address, message: run.Hello) -> None:
    if not _proven(turn, message.run, message.secret):
        return
    row = find_run(turn.store, message.run)
    if row is not None and row.state == "active":
        peer = turn.world.executors.get(message.run)
        if peer is None:
            peer = turn.world.executors[message.run] = ExecutorPeer(address, turn.mono_ms, turn.now_ms)
        peer.address, peer.heard_mono_ms, peer.heard_ms = address, turn.mono_ms, turn.now_ms
        turn.world.link.vouch(message.run)
    answer = run.HelloAnswer(message.run, turn.world.instance, _order(row))
    turn.effects.to_executors.append((address, answer))


def _order(row: RunRow | None) -> str | None:
    """Why the run is to be ended: cancelled, or abandoned while its process goes on."""
    if row is None:
        return None
    if row.state == "active" or row.reason == Reason.ABANDONED:
        return row.cancel_why
    return None


def _progress(turn: Turn, address: Address, message: run.Progress) -> None:
    """Dropped unless the peer's last hello named this run."""
    peer = turn.world.executors.get(message.run)
    if peer is None or peer.address != address:
        return
    peer.heard_mono_ms, peer.heard_ms = turn.mono_ms, turn.now_ms
    peer.phase = message.phase
    peer.stdout_bytes, peer.stderr_bytes = message.stdout_bytes, message.stderr_bytes


def _report(turn: Turn, address: Address, message: run.Report) -> None:
    if not _proven(turn, message.run, message.secret):
        return
    try:
        finished = outcome.decode(message.outcome)
    except msgspec.DecodeError as error:
        log.error("run.bad_outcome", f"an outcome cannot be read: {error}", run=message.run)
        return
    if finished.run != message.run:
        log.error("run.bad_outcome", "an outcome names another run", run=message.run, other=finished.run)
        return
    ledger.finish(turn, message.run, finished)
    turn.effects.to_executors.append((address, run.Recorded(message.run)))


def _proven(turn: Turn, run_id: str, secret: str) -> bool:
    if hmac.compare_digest(secret.encode(), ids.run_secret(turn.world.secret_key, run_id).encode()):
        return True
    log.warning("run.wrong_secret", "a peer names a run that it was not given; dropped", run=run_id)
    return False
