"""Runs as clients see them."""

from cronward.protocol import outcome
from cronward.protocol.views import CancelView, RunView, StreamView
from cronward.scheduler.launcher_link import LinkState
from cronward.scheduler.rows import RunRow
from cronward.scheduler.world import Mode, World

STALLED_MS = 20_000
"""An executor greets each five seconds; four missed greetings make its run `stalled`."""

_ACTIONS = {"queued": "queued", "active": "started"}


def run_view(world: World, run: RunRow) -> RunView:
    made = outcome.decode(run.outcome) if run.outcome else None
    finished = run.state not in _ACTIONS
    peer = world.executors.get(run.run_id)
    return RunView(
        run_id=run.run_id,
        key=run.run_key,
        job_id=run.job_id,
        job_name=run.job_name,
        kind=run.kind,
        state=run.state,
        action=_ACTIONS.get(run.state, "finished"),
        ts=run.ended_ms or run.activated_ms or run.requested_ms,
        slot_ms=run.slot_ms,
        requested_at_ms=run.requested_ms,
        mode=run.mode,
        requester=run.requester,
        status=run.state if finished else None,
        completion_status=("succeeded" if run.state == "ok" else "failed") if finished else None,
        reason=run.reason,
        error=run.message if run.state in ("error", "skipped") else None,
        summary=_summary(made) if made else None,
        delivery_status="not-requested" if finished else None,
        activated_at_ms=run.activated_ms,
        run_at_ms=run.started_ms or (run.activated_ms if peer else None),
        ended_at_ms=run.ended_ms,
        duration_ms=made.duration_ms if made else None,
        exit_code=made.exit_code if made else None,
        signal=made.signal if made else None,
        stdout=_stream(made.stdout) if made else _progress(peer.stdout_bytes if peer else 0),
        stderr=_stream(made.stderr) if made else _progress(peer.stderr_bytes if peer else 0),
        left=made.left if made else 0,
        cpu_ms=made.cpu_ms if made else None,
        max_rss_kib=made.max_rss_kib if made else None,
        cancel=_cancel(run),
        waiting=waiting(world) if run.state == "queued" else None,
        phase=peer.phase or None if peer and run.state == "active" else None,
        unverified_since_ms=world.link.unverified_since_ms.get(run.run_id) if run.state == "active" else None,
        stalled_since_ms=_stalled(world, run),
        late_outcome=run.late_outcome,
    )


def waiting(world: World) -> str:
    """What a queued run waits for."""
    if world.mode is not Mode.RUNNING:
        return str(world.mode)
    if world.link.state is not LinkState.READY:
        return "launcher"
    if world.link.heartbeat is not None and world.link.heartbeat.cannot_start is not None:
        return f"launcher cannot start runs: {world.link.heartbeat.cannot_start}"
    return "capacity"


def _stalled(world: World, run: RunRow) -> int | None:
    peer = world.executors.get(run.run_id)
    if run.state != "active" or peer is None:
        return None
    silent = world.clock.mono_ms() - peer.heard_mono_ms > STALLED_MS
    return peer.heard_ms if silent else None


def _cancel(run: RunRow) -> CancelView | None:
    if run.cancel_by is None or run.cancel_ms is None:
        return None
    return CancelView(by=run.cancel_by, why=run.cancel_why or "", at_ms=run.cancel_ms)


def _stream(stream: outcome.Stream) -> StreamView | None:
    if not stream.written:
        return None
    return StreamView(
        written=stream.written,
        kept=stream.kept,
        sha256=stream.sha256,
        head=stream.head.decode("utf-8", "replace"),
        tail=stream.tail.decode("utf-8", "replace"),
        truncated=stream.truncated,
    )


def _progress(written: int) -> StreamView | None:
    return StreamView(written=written, kept=written) if written else None


def _summary(made: outcome.Outcome) -> str | None:
    """Standard output, or standard error where there is none; with both, each under its name."""
    out, err = (_excerpt(made.stdout), _excerpt(made.stderr))
    if out and err:
        return f"stdout:\n{out}\n\nstderr:\n{err}"
    return out or err or None


def _excerpt(stream: outcome.Stream) -> str:
    head, tail = (part.decode("utf-8", "replace") for part in (stream.head, stream.tail))
    return f"{head}\n…\n{tail}".strip() if tail else head.strip()
