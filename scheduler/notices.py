"""Notices to operators: an outbox written with the facts, sent when a recovery is complete."""

import msgspec

from cronward.protocol import failpoints, log
from cronward.protocol.views import NoticeView
from cronward.scheduler.rows import integer, text
from cronward.scheduler.store import Row, Store
from cronward.scheduler.world import Turn, World

SEND_AFTER_MS = 10_000
"""A recovery that is not complete after this time tells what it knows; runs that follow raise the notice again."""


def add_recovered(turn: Turn, run_id: str) -> None:
    """The run was interrupted or lost: it joins the one notice of this recovery (an epoch of the launcher)."""
    notice_id = f"recovery:{turn.world.instance}:{turn.world.link.epoch}"
    turn.store.run("add_to_notice", notice_id=notice_id, kind="recovery", run_id=run_id, now_ms=turn.now_ms)


def add(turn: Turn, notice_id: str, kind: str, text: str) -> None:
    """A notice that is complete as it is."""
    turn.store.run("insert_notice", notice_id=notice_id, kind=kind, runs="[]", text=text, now_ms=turn.now_ms)


def send_due(turn: Turn) -> None:
    """Marks what was sent, and makes what is to be sent now an effect: at least once, whenever the process ends."""
    for notice_id, runs in turn.world.notices_sent.items():
        turn.store.run("mark_notice_sent", notice_id=notice_id, runs=runs, now_ms=turn.now_ms)
    for row in turn.store.rows("unsent_notices"):
        notice = _view(row)
        if turn.world.link.undecided and turn.now_ms - notice.at_ms < SEND_AFTER_MS:
            continue
        turn.effects.notices.append(notice)


def send(world: World, notices: list[NoticeView]) -> None:
    """After the commit: logs the notices and remembers that they are sent."""
    world.notices_sent = {notice.id: len(notice.runs) for notice in notices}
    for notice in notices:
        failpoints.hit("scheduler.before_notify")
        log.warning("notice.sent", notice.text, notice=notice.id, runs=notice.runs)


def recent(store: Store, limit: int) -> list[NoticeView]:
    """The newest notices."""
    return [_view(row) for row in store.rows("recent_notices", limit=limit)]


def _view(row: Row) -> NoticeView:
    notice_id, kind, runs, said, created_ms = row
    names = msgspec.json.decode(text(runs), type=list[str])
    number = f"{len(names)} run" + ("" if len(names) == 1 else "s")
    ended = "ended without a result because Cronward or the machine stopped; nothing is run again by itself"
    return NoticeView(
        id=text(notice_id),
        kind=text(kind),
        text=f"{number} {ended}" if said is None else text(said),
        runs=names,
        at_ms=integer(created_ms),
    )
