"""Activation (commit B): queued requests become active, within capacity and the window, and their launches are made."""

from cronward.protocol import ids, launch, log
from cronward.protocol import job as jobs
from cronward.protocol.outcome import Reason
from cronward.scheduler import admission, aftermath, ledger, settings
from cronward.scheduler.flags import UNREADABLE, flag
from cronward.scheduler.rows import find_job, text
from cronward.scheduler.store import StorageBlocked, StorageFailed
from cronward.scheduler.world import Mode, Turn


def activate(turn: Turn, committed_arrival: int) -> None:
    """Activates what admission allows, of the requests that an earlier commit holds: no run is ever requested and
    activated by one transaction, so each is seen queued before it is launched."""
    link = turn.world.link
    load = admission.Load(
        ready=link.can_launch() and turn.world.mode is Mode.RUNNING and turn.world.storage_error is None,
        capacity=turn.world.settings.config.capacity.runs,
        active=turn.store.integer("count_active"),
        unanswered=len(link.unanswered),
    )
    free = admission.admit(load)
    if not free:
        return
    for row in turn.store.rows("queue_head", committed=committed_arrival, limit=free):
        run_id, job_id = text(row[0]), text(row[1])
        mark = turn.effects.mark()
        try:
            with turn.store.savepoint():
                _activate(turn, run_id, job_id)
        except (StorageBlocked, StorageFailed):
            raise
        except Exception as error:
            turn.effects.return_to(mark)
            log.error("run.activation_failed", "a run could not be launched; skipped", exc_info=True, run=run_id)
            ledger.withdraw(turn, run_id, Reason.INVALID_SPEC, f"internal error: {error}")


def _activate(turn: Turn, run_id: str, job_id: str) -> None:
    """The definition as it is now goes with the launch; from here on edits concern later runs."""
    job = find_job(turn.store, job_id)
    if job is None:
        ledger.withdraw(turn, run_id, Reason.REMOVED, "the job was removed before the run started")
        return
    definition = aftermath.readable(job)
    if definition is None:
        ledger.withdraw(turn, run_id, Reason.UNKNOWN_KIND, "the stored definition cannot be read by this release")
        flag(turn, job, UNREADABLE)
        return
    if ledger.activate(turn, run_id):
        turn.effects.to_launcher.append(_launch(turn, run_id, job.definition, definition.payload))


def _launch(turn: Turn, run_id: str, definition: bytes, payload: jobs.Payload) -> launch.Launch:
    world = turn.world
    config = world.settings.config
    return launch.Launch(
        instance=world.instance,
        epoch=world.link.epoch,
        run=run_id,
        kind="command",
        job=definition,
        limits=settings.limits(config, payload),
        secret=ids.run_secret(world.secret_key, run_id),
        path=config.command.path,
        leave_children=payload.leave_children,
    )
