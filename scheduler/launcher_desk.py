"""What the launcher says, applied to the ledger, and what it is told."""

from cronward.protocol import launch, log, outcome
from cronward.protocol.launch import Gone, RefuseReason, RunState
from cronward.protocol.outcome import Reason
from cronward.scheduler import ledger
from cronward.scheduler.effects import Address
from cronward.scheduler.launcher_link import LinkState, Step
from cronward.scheduler.rows import ActiveRow, active_runs
from cronward.scheduler.runstate import Event
from cronward.scheduler.world import Turn

_REFUSALS: dict[RefuseReason, tuple[Event, Reason]] = {
    RefuseReason.STALE_EPOCH: (Event.NEVER_START, Reason.LAUNCH_LOST),
    RefuseReason.LEAVING: (Event.NEVER_START, Reason.LAUNCH_LOST),
    RefuseReason.CANCELLED: (Event.REFUSE, Reason.CANCELLED),
    RefuseReason.SPAWN_FAILED: (Event.REFUSE, Reason.SPAWN_FAILED),
    RefuseReason.GATEWAY_UNAVAILABLE: (Event.REFUSE, Reason.GATEWAY_UNAVAILABLE),
}


def handle(turn: Turn, address: Address, message: launch.FromLauncher) -> None:
    """One message of a launcher. It is answered at the address that it came from; orders go to the launcher of the
    current epoch, wherever that was heard last."""
    link = turn.world.link
    step = link.step(message)
    if step in (Step.APPLY, Step.CONFIRM, Step.BEAT):
        link.address = address
    if address == link.address:
        link.heard_mono_ms = turn.mono_ms
    match step, message:
        case Step.WELCOME, launch.Register():
            _welcome(turn, address, message)
        case Step.APPLY, launch.Inventory():
            _apply_inventory(turn, address, message)
        case Step.RECORD, _:
            _record(turn, address, message)
        case Step.BEAT, launch.Heartbeat():
            _beat(turn, address, message)
        case Step.CONFIRM, _:
            _answer(turn, address, launch.Reconciled(link.instance, link.epoch))
        case Step.FAREWELL, launch.Leaving():
            _farewell(turn, address, message)
        case _:
            _send_away(turn, address)


def _answer(turn: Turn, address: Address, message: launch.ToLauncher) -> None:
    turn.effects.launcher_answers.append((address, message))


def _welcome(turn: Turn, address: Address, message: launch.Register) -> None:
    link = turn.world.link
    active = [row.run_id for row in active_runs(turn.store)]
    link.open_epoch(message.launcher, address, active, turn.now_ms)
    link.heard_mono_ms = turn.mono_ms
    config = turn.world.settings.launcher_config()
    _answer(turn, address, launch.Welcome(link.instance, link.epoch, config, active))
    turn.effects.service_changed = True
    log.info("launcher.welcomed", "a launcher registered", epoch=link.epoch, launcher_pid=message.launcher.pid)


def _apply_inventory(turn: Turn, address: Address, message: launch.Inventory) -> None:
    link = turn.world.link
    rows = {row.run_id: row for row in active_runs(turn.store)}
    for run_id in list(link.undecided):
        found = message.runs.get(run_id)
        row = rows.get(run_id)
        if row is None:
            link.vouch(run_id)
        elif found is RunState.ABSENT:
            _absent(turn, row)
        elif found in (RunState.HELD, RunState.WAITING):
            link.vouch(run_id)
    link.apply_inventory(turn.mono_ms)
    _answer(turn, address, launch.Reconciled(link.instance, link.epoch))
    turn.effects.service_changed = True
    log.info("launcher.reconciled", "the launcher's inventory was applied", epoch=link.epoch, runs=len(message.runs))


def _absent(turn: Turn, row: ActiveRow) -> None:
    """The one proof of a lost launch: the launcher refuses launches of that epoch and has no trace of the run. After
    another boot the trace may have been lost with unsynced data, so it is only interrupted."""
    if row.boot_id != turn.world.boot_id:
        message = "the machine was restarted while the run was active"
        ledger.settle(turn, row.run_id, ledger.Result(Event.VANISH, Reason.INTERRUPTED, message))
    elif (row.instance, row.epoch) != (turn.world.link.instance, turn.world.link.epoch):
        message = "the launch was lost before an executor had it; it did not start"
        ledger.settle(turn, row.run_id, ledger.Result(Event.NEVER_START, Reason.LAUNCH_LOST, message))


def _record(turn: Turn, address: Address, message: launch.FromLauncher) -> None:
    link = turn.world.link
    match message:
        case launch.Accepted():
            link.answered(message.run)
            link.vouch(message.run)
        case launch.Refused():
            link.answered(message.run)
            event, reason = _REFUSALS[message.reason]
            text = message.detail or f"the launcher refused the launch: {message.reason}"
            ledger.settle(turn, message.run, ledger.Result(event, reason, text))
        case launch.Exited():
            link.answered(message.run)
            _exited(turn, message)
            _answer(turn, address, launch.Ack(message.run))
        case launch.Forgotten():
            for run_id in message.runs:
                turn.store.run("delete_forgotten", run_id=run_id)


def _exited(turn: Turn, message: launch.Exited) -> None:
    if message.how is Gone.REPORTED and message.outcome is not None:
        ledger.finish(turn, message.run, outcome.decode(message.outcome))
        return
    text = message.detail or "its executor ended without leaving a result"
    if message.left:
        text += f"; {message.left} of its processes could not be ended"
    ledger.settle(turn, message.run, ledger.Result(Event.VANISH, Reason.INTERRUPTED, text))


def _beat(turn: Turn, address: Address, message: launch.Heartbeat) -> None:
    link = turn.world.link
    before = link.heartbeat
    if before is None or (before.cannot_start, before.gateway) != (message.cannot_start, message.gateway):
        turn.effects.service_changed = True
        if message.cannot_start:
            log.error("launcher.cannot_start", "the launcher cannot start runs; they wait", why=message.cannot_start)
    link.heartbeat = message
    _answer(turn, address, launch.Beat(link.instance, link.epoch))


def _farewell(turn: Turn, address: Address, message: launch.Leaving) -> None:
    link = turn.world.link
    if (message.instance, message.epoch) == (link.instance, link.epoch):
        link.close_epoch([row.run_id for row in active_runs(turn.store)], turn.now_ms)
        link.state = LinkState.LEAVING
        turn.effects.service_changed = True
        log.info("launcher.left", "the launcher handed over; runs go on", epoch=link.epoch)
    _answer(turn, address, launch.Left(message.instance, message.epoch))


def _send_away(turn: Turn, address: Address) -> None:
    """Asks for a registration, unless the sender has one: then its message crossed a Welcome and is of the past."""
    link = turn.world.link
    if address != link.address or link.state in (LinkState.ABSENT, LinkState.LEAVING):
        _answer(turn, address, launch.RegisterAgain())


def close_epoch(turn: Turn, why: str) -> None:
    """Stops launching until the launcher has registered again, and asks it to."""
    link = turn.world.link
    link.close_epoch([row.run_id for row in active_runs(turn.store)], turn.now_ms)
    turn.effects.to_launcher.append(launch.RegisterAgain())
    turn.effects.service_changed = True
    log.warning("launcher.epoch_closed", why, epoch=link.epoch)
