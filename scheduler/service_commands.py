"""Commands about the service as a whole, and its status."""

import os

import msgspec

from cronward.protocol import launch
from cronward.protocol.control import DrainParams
from cronward.protocol.version import VERSION
from cronward.protocol.views import CronStatus, DrainAnswer, LauncherView, NextSlot, ServiceStatus, StatusSnapshot
from cronward.scheduler import cancellation, changes, notices, run_views
from cronward.scheduler.caller import Caller
from cronward.scheduler.launcher_link import LinkState
from cronward.scheduler.rows import integer, run_rows, text
from cronward.scheduler.world import Mode, Turn, World

PAUSED_BY = "paused_by"
SNAPSHOT_SLOTS = 100
SNAPSHOT_RUNS = 1000
STATUS_NOTICES = 5


def pause(turn: Turn, caller: Caller) -> ServiceStatus:
    """service.pause: nothing becomes due and nothing starts, also after a restart. What runs goes on. A pause
    that is there stays that of whom it is."""
    if turn.world.paused_by is not None:
        return status(turn)
    turn.store.run("set_meta", key=PAUSED_BY, value=str(caller))
    changes.note(turn, caller, "paused", changes.Detail())
    turn.world.paused_by = str(caller)
    if turn.world.mode is Mode.RUNNING:
        turn.world.mode = Mode.PAUSED
    turn.effects.service_changed = True
    return status(turn)


def resume(turn: Turn, caller: Caller) -> ServiceStatus:
    """service.resume: ends a pause or a drain. Slots that were missed are one slot per job."""
    turn.store.run("delete_meta", key=PAUSED_BY)
    changes.note(turn, caller, "resumed", changes.Detail())
    turn.world.paused_by = None
    if turn.world.mode in (Mode.PAUSED, Mode.DRAINING):
        turn.world.mode = Mode.RUNNING
    turn.effects.service_changed = True
    return status(turn)


def drain(turn: Turn, caller: Caller, params: DrainParams) -> DrainAnswer:
    """service.drain: nothing more starts until resume or the next start; asked again, it tells what is left."""
    if turn.world.mode in (Mode.RUNNING, Mode.PAUSED):
        turn.world.mode = Mode.DRAINING
        changes.note(turn, caller, "drained", changes.Detail())
        turn.effects.service_changed = True
    cancelled = cancellation.cancel_all(turn, str(caller), "drain") if params.kill else 0
    return DrainAnswer(turn.store.integer("count_active"), turn.store.integer("count_queued"), cancelled)


def reload(turn: Turn) -> ServiceStatus:
    """service.reload and SIGHUP: installs the configuration file as it is now, and tells the launcher."""
    if turn.world.settings.reload():
        turn.effects.to_launcher.append(launch.Configure(turn.world.settings.launcher_config()))
    turn.effects.service_changed = True
    return status(turn)


def cron_status(turn: Turn) -> CronStatus:
    """cron.status."""
    return CronStatus(
        enabled=turn.world.mode is Mode.RUNNING,
        triggers_enabled=False,
        store_path=str(turn.world.paths.state),
        storage="sqlite",
        sqlite_path=str(turn.world.paths.database),
        jobs=turn.store.integer("count_jobs"),
        next_wake_at_ms=_next_wake(turn),
    )


def status(turn: Turn) -> ServiceStatus:
    """service.status."""
    world, config = turn.world, turn.world.settings.config
    counted = turn.store.row("count_jobs")
    jobs, enabled = (integer(value) for value in counted) if counted else (0, 0)
    held = _held(turn)
    return ServiceStatus(
        version=VERSION,
        instance=world.instance,
        pid=os.getpid(),
        started_at_ms=world.started_ms,
        now_ms=turn.now_ms,
        mode=str(world.mode),
        paused_by=world.paused_by,
        state_dir=str(world.paths.state),
        runtime_dir=str(world.paths.runtime),
        config_path=str(world.settings.path),
        config_version=world.settings.snapshot.version,
        config_error=world.settings.error,
        storage_error=world.storage_error,
        default_tz=config.default_tz,
        launcher=_launcher_view(world),
        capacity=config.capacity.runs,
        active=turn.store.integer("count_active"),
        queued=turn.store.integer("count_queued"),
        jobs=jobs,
        jobs_enabled=enabled,
        jobs_flagged=turn.store.integer("count_flagged"),
        next_wake_at_ms=_next_wake(turn),
        notices=notices.recent(turn.store, STATUS_NOTICES),
        deadlines_far_ahead=world.review.far_ahead,
        held_by=str(Caller(held[1], None, held[2])) if held else None,
        held_at_ms=held[0] if held else None,
    )


def _held(turn: Turn) -> tuple[int, int | None, str | None] | None:
    """When and by whom the service was paused or drained (time, uid, caller), if it is."""
    action = {Mode.PAUSED: "paused", Mode.DRAINING: "drained"}.get(turn.world.mode)
    row = None if action is None else turn.store.row("last_hold", action=action)
    return None if row is None else msgspec.convert(row, tuple[int, int | None, str | None])


def snapshot(turn: Turn) -> StatusSnapshot:
    """status.snapshot: the state that event `seq` led to."""
    rows = run_rows(turn.store.rows("live_runs", limit=SNAPSHOT_RUNS))
    slots = turn.store.rows("next_deadlines", limit=SNAPSHOT_SLOTS)
    return StatusSnapshot(
        instance=turn.world.instance,
        seq=turn.world.event_seq,
        service=status(turn),
        live=[run_views.run_view(turn.world, row) for row in rows],
        next_slots=[NextSlot(text(row[0]), text(row[1]), integer(row[2])) for row in slots],
    )


def _next_wake(turn: Turn) -> int | None:
    row = turn.store.row("next_deadline")
    return row[0] if row and isinstance(row[0], int) else None


def _launcher_view(world: World) -> LauncherView:
    link = world.link
    beat = link.heartbeat
    absent = link.state in (LinkState.ABSENT, LinkState.LEAVING)
    pid = link.launcher.pid if link.launcher and not absent else None
    if beat is None or absent:
        return LauncherView(state=str(link.state), epoch=link.epoch, pid=pid)
    return LauncherView(
        state=str(link.state),
        epoch=link.epoch,
        pid=pid,
        gateway=str(beat.gateway),
        ready=beat.pool.ready,
        busy=beat.pool.busy,
        starting=beat.pool.starting,
        adopted=beat.pool.adopted,
        waiting=beat.pool.waiting,
        cannot_start=beat.cannot_start,
    )
