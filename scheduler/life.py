"""One life of the scheduler in the database: what its first and its last transaction write."""

from cronward.protocol.outcome import Reason
from cronward.protocol.version import VERSION
from cronward.scheduler import due, ledger, review, service_commands
from cronward.scheduler.rows import active_runs, text
from cronward.scheduler.world import Mode, Turn


def begin(turn: Turn) -> None:
    """What a restart decides by itself: a pause goes on, requests whose payload lived in memory are gone, lost
    deadlines are planned anew, and nobody vouches for what was active."""
    world, store = turn.world, turn.store
    review.begin(turn)
    store.run("begin_life", instance=world.instance, boot_id=world.boot_id, version=VERSION, now_ms=turn.now_ms)
    for row in store.rows("queued_events"):
        ledger.withdraw(turn, text(row[0]), Reason.CONTEXT_LOST, "the request lost its launch context")
    due.restore_deadlines(turn)
    paused = store.row("get_meta", key=service_commands.PAUSED_BY)
    if paused is not None:
        world.mode, world.paused_by = Mode.PAUSED, text(paused[0])
    world.link.doubt([active.run_id for active in active_runs(store)], turn.now_ms)


def end(turn: Turn) -> None:
    """The end was orderly: the next start need not check the database."""
    turn.store.run("end_life", instance=turn.world.instance, now_ms=turn.now_ms)
