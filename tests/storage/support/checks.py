"""What must hold after a fault: one small function per promise. Each returns what is wrong, empty if nothing is."""

from collections import Counter
from pathlib import Path

import apsw
import msgspec

from cronward.protocol import control, launch, run
from cronward.protocol.views import BackupAnswer, CancelAnswer, JobView, RunAnswer
from cronward.scheduler.database import integrity_problems, open_database
from cronward.scheduler.store import Value
from tests.storage.support.picture import Picture, difference, picture
from tests.storage.support.rig import Asked, Rig

RANK = {"queued": 0, "active": 1, "ok": 2, "error": 2, "skipped": 2}
"""Runs only move up."""

HONEST = frozenset({"STORAGE_FULL", "STORAGE_FAILED", "BACKUP_FAILED", "CRON_JOB_NOT_FOUND", "INVALID_REQUEST"})
"""Errors that a client may be told during a fault: never that it met a bug."""


def consistent(connection: apsw.Connection) -> list[str]:
    """Pages, indexes, foreign keys, CHECKs and the type of each column."""
    return [f"inconsistent: {problem}" for problem in integrity_problems(connection)]


def one_of(found: Picture, allowed: list[Picture]) -> list[str]:
    """The database holds what one of these commits made it, nothing in between."""
    if found in allowed:
        return []
    return [f"the database holds what no commit made: {difference(allowed[-1], found)}"]


def kept(rig: Rig, connection: apsw.Connection) -> list[str]:
    """Whatever a peer was told is in the database: acknowledged means kept, and nothing was told before its commit."""
    wrong = _changes_kept(connection, rig)
    forgotten = {name for order in rig.to_launcher() if isinstance(order, launch.Forget) for name in order.runs}
    for asked, answer in rig.answers():
        if answer.ok:
            wrong += _answer_kept(connection, asked, answer, rig)
    for message in rig.to_executors():
        if isinstance(message, run.Recorded) and _state(connection, message.run) in ("queued", "active"):
            wrong.append(f"Recorded was sent for {message.run}, which is not terminal")
    for order in rig.to_launcher():
        wrong += _order_kept(connection, order)
    for event in rig.told_events():
        wrong += _event_kept(connection, event)
    return [problem for problem in wrong if not any(name in problem for name in forgotten)]


def honest(rig: Rig) -> list[str]:
    """No client was told of a bug, and no job is blamed for the disk."""
    codes = [answer.error.code for _, answer in rig.answers() if answer.error is not None]
    return [f"a client was told {code}" for code in codes if code not in HONEST]


def launched_once(rig: Rig) -> list[str]:
    return [f"{run_id} was launched {times} times" for run_id, times in Counter(rig.launched).items() if times > 1]


def _changes_kept(connection: apsw.Connection, rig: Rig) -> list[str]:
    """Every addition and edit that was answered has its row among the changes."""
    answered = [answer.payload for asked, answer in rig.answers() if answer.ok and _is_edit(asked)]
    views = [msgspec.json.decode(body, type=JobView) for body in answered if isinstance(body, msgspec.Raw)]
    wrong = []
    for job, count in Counter(view.id for view in views).items():
        noted = len(list(connection.execute("SELECT 1 FROM changes WHERE job_id = ?", (job,))))
        if noted < count:
            wrong.append(f"{noted} of {count} answered edits of {job} are there")
    return wrong


def _is_edit(asked: Asked) -> bool:
    """Without a token, since a token's answer is given again."""
    return asked.method in ("cron.add", "cron.update") and "requestId" not in asked.params


def _answer_kept(connection: apsw.Connection, asked: Asked, answer: control.Response, rig: Rig) -> list[str]:
    body = bytes(answer.payload) if isinstance(answer.payload, msgspec.Raw) else b"null"
    wrong: list[str] = []
    token = asked.params.get("requestId")
    if isinstance(token, str):
        stored = _one(connection, "SELECT answer FROM requests WHERE request_id = ?", token)
        if not isinstance(stored, str) or stored.encode() != body:
            wrong.append(f"the first answer to {token} is not kept")
    match asked.method:
        case "cron.remove":
            if _one(connection, "SELECT 1 FROM jobs WHERE job_id = ?", str(asked.params["id"])):
                wrong.append("a removed job is there")
        case "cron.run":
            enqueued = msgspec.json.decode(body, type=RunAnswer)
            if enqueued.run_id is not None and _state(connection, enqueued.run_id) is None:
                wrong.append(f"run {enqueued.run_id} was promised and is not there")
        case "run.cancel":
            wrong += _cancel_kept(connection, msgspec.json.decode(body, type=CancelAnswer))
        case "service.backup":
            wrong += sound_backup(Path(msgspec.json.decode(body, type=BackupAnswer).path), rig)
    return wrong


def _cancel_kept(connection: apsw.Connection, answer: CancelAnswer) -> list[str]:
    cancel_ms = _one(connection, "SELECT cancel_ms FROM runs WHERE run_id = ?", answer.run_id)
    if answer.result == "requested" and cancel_ms is None:
        return ["a cancel was promised and is not there"]
    if answer.result == "cancelled" and _state(connection, answer.run_id) != "skipped":
        return ["a cancelled request is not skipped"]
    return []


def sound_backup(path: Path, rig: Rig) -> list[str]:
    """It opens, is consistent, and holds a state that a commit made."""
    if not path.exists():
        return [f"the backup {path.name} was answered and is not there"]
    with rig.disk.unseen():
        backup = open_database(path, read_only=True)
        wrong = consistent(backup) + one_of(picture(backup), rig.history.committed)
        backup.close()
    return [f"backup: {problem}" for problem in wrong]


def _order_kept(connection: apsw.Connection, order: launch.ToLauncher) -> list[str]:
    match order:
        case launch.Launch():
            row = connection.execute(
                "SELECT state, instance, epoch FROM runs WHERE run_id = ?", (order.run,)
            ).fetchone()
            if row is None or row[0] == "queued" or row[1:] != (order.instance, order.epoch):
                return [f"{order.run} was launched, but its row is {row}"]
        case launch.Ack():
            if _state(connection, order.run) in ("queued", "active"):
                return [f"{order.run} was acknowledged and is not terminal"]
        case launch.Cancel():
            row = connection.execute("SELECT state, cancel_ms FROM runs WHERE run_id = ?", (order.run,)).fetchone()
            if row is not None and row[0] == "active" and row[1] is None:
                return [f"{order.run} was to be cancelled; its row does not know"]
        case launch.Forget():
            marked = "SELECT 1 FROM runs WHERE run_id = ? AND forget_ms IS NULL"
            return [
                f"{name} was to be forgotten; its row is not" for name in order.runs if _one(connection, marked, name)
            ]
    return []


class _Payload(msgspec.Struct, rename="camel"):
    """What the events of interest have in common."""

    run_id: str | None = None
    state: msgspec.Raw = msgspec.Raw(b"null")
    id: str | None = None


def _event_kept(connection: apsw.Connection, event: control.Event) -> list[str]:
    if event.event not in ("cron", "notice"):
        return []
    told = msgspec.json.decode(event.payload, type=_Payload)
    if event.event == "notice":
        row = _one(connection, "SELECT 1 FROM notices WHERE notice_id = ?", told.id)
        return [] if row else [f"notice {told.id} was told and is not there"]
    if told.run_id is None:
        return []
    state = _state(connection, told.run_id)
    said = msgspec.json.decode(told.state, type=str)
    if state is None or RANK[state] < RANK[said]:
        return [f"{told.run_id} was told to be {said} and is {state}"]
    return []


def _state(connection: apsw.Connection, run_id: str) -> str | None:
    found = _one(connection, "SELECT state FROM runs WHERE run_id = ?", run_id)
    return found if isinstance(found, str) else None


def _one(connection: apsw.Connection, text: str, *values: Value) -> Value:
    row = connection.execute(text, values).fetchone()
    return row[0] if row else None
