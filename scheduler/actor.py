"""The actor: one thread, one loop. Wait, take a batch, apply it in one transaction, send what it led to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from cronward.protocol import failpoints, launch, log, run
from cronward.protocol.errors import Code
from cronward.scheduler import activation, due, executor_desk, launcher_desk, requests, service_commands
from cronward.scheduler.backup import Backups
from cronward.scheduler.effects import Address, Effects, Fact
from cronward.scheduler.emission import Emission
from cronward.scheduler.ports import Batch, Ports
from cronward.scheduler.retention import Retention
from cronward.scheduler.store import StorageBlocked, StorageFailed, Store
from cronward.scheduler.timers import Timers
from cronward.scheduler.world import Mode, Turn, World

IDLE_WAIT_MS = 1_000


class Actor:
    """Owns the loop. Everything that it decides is in the functions that it calls."""

    def __init__(self, world: World, store: Store, ports: Ports) -> None:
        self._world = world
        self._store = store
        self._ports = ports
        self._emission = Emission(world, store, ports)
        self._backups = Backups(store.connection)
        self._retention = Retention()
        self._timers = Timers(world.clock.mono_ms())
        self._more = False

    def turn(self, check_signals: Callable[[], None]) -> None:
        """One turn of the loop. Raises StorageFailed if the process has to end."""
        self._ports.wait(self._wait_ms())
        check_signals()
        batch = self._ports.take()
        try:
            effects = self._decide(batch)
        except StorageFailed:
            self._emission.send(self._farewell(batch))
            raise
        self._emission.send(effects)
        if self._world.storage_error is not None:
            self._try_to_write()
        if self._backups.active:
            answered = Effects()
            self._backups.step(self._world.clock.mono_ms(), answered)
            self._emission.send(answered)

    def _wait_ms(self) -> int:
        """Until the next deadline, at most a second; not at all while there is work left."""
        if self._more or self._backups.active:
            return 0
        if not due.may_decide(self._world):
            return IDLE_WAIT_MS
        deadline_ms = self._store.integer("next_deadline") or self._world.clock.wall_ms() + IDLE_WAIT_MS
        return max(0, min(IDLE_WAIT_MS, deadline_ms - self._world.clock.wall_ms()))

    def _decide(self, batch: Batch) -> Effects:
        """What the batch and the clock lead to, committed."""
        try:
            return self._commit(batch)
        except StorageBlocked as error:
            return self._blocked(batch, error)

    def _commit(self, batch: Batch) -> Effects:
        """Applies the batch and what is due in one transaction; without its commit there are no effects."""
        turn = Turn(self._world, self._store)
        with self._transaction(turn):
            committed_arrival = self._store.integer("last_arrival")
            self._apply(turn, batch)
            self._timers.run(turn, self._retention, self._ports)  # may close the epoch, before anything is activated
            if self._world.link.is_settled(turn.mono_ms):
                self._world.caught_up = True
            activation.activate(turn, committed_arrival)
            more_due = due.may_decide(self._world) and due.decide_due(turn)
            self._more = more_due or Fact.REQUEST in turn.effects.facts
        return turn.effects

    @contextmanager
    def _transaction(self, turn: Turn) -> Iterator[None]:
        """Commits what happens inside, with the failpoints of the facts that it contains; undoes all if it raises."""
        memory = self._world.mode, self._world.paused_by
        self._store.begin()
        try:
            yield
            _pass_failpoints(turn.effects.facts, _BEFORE)
            self._store.commit()
        except BaseException:
            self._store.rollback()
            self._world.mode, self._world.paused_by = memory
            raise
        _pass_failpoints(turn.effects.facts, _AFTER)

    def _apply(self, turn: Turn, batch: Batch) -> None:
        for address, body in batch.run:
            self._guarded(turn, partial(_from_executor, turn, address, body))
        for address, body in batch.launch:
            self._guarded(turn, partial(_from_launcher, turn, address, body))
        for arrived in batch.requests:
            if self._ports.is_full(arrived):
                requests.refuse(turn, arrived, Code.PEER_BACKLOG, "read the answers that wait for you, then ask again")
            else:
                requests.handle(turn, arrived, self._backups)

    def _guarded(self, turn: Turn, apply: Callable[[], None]) -> None:
        """A message that fails is undone alone, and never stops the others."""
        mark = turn.effects.mark()
        try:
            with self._store.savepoint():
                apply()
        except (StorageBlocked, StorageFailed):
            raise
        except msgspec.DecodeError as error:
            turn.effects.return_to(mark)
            log.warning("message.undecodable", f"a message cannot be read and is dropped: {error}")
        except Exception:
            turn.effects.return_to(mark)
            log.error("message.failed", "a message met a bug and is dropped; its sender will repeat it", exc_info=True)

    def _blocked(self, batch: Batch, error: StorageBlocked) -> Effects:
        """Nothing of the batch could be written: each message is tried alone. What writes nothing is done, requests
        that do are refused, and facts come again since nobody heard that they were recorded."""
        world = self._world
        if world.storage_error != str(error):
            log.error(_BLOCKED[error.code], f"{error}; nothing new is started until this is mended")
        world.storage_error = str(error)
        self._more = False
        self._backups.withdraw()
        effects = Effects()
        for single in batch.singles():
            turn = Turn(world, self._store)
            try:
                with self._transaction(turn):
                    self._apply(turn, single)
            except StorageBlocked as problem:
                turn = Turn(world, self._store)
                for arrived in single.requests:
                    requests.refuse(turn, arrived, problem.code, f"{problem}; nothing was changed")
            effects.add(turn.effects)
        return effects

    def _farewell(self, batch: Batch) -> Effects:
        """The database failed and the process is about to end. A commit that failed may still be found by the next
        start, so nobody is told that nothing was changed."""
        turn = Turn(self._world, self._store)
        message = "the database failed; whether this was done is not known: ask again, with the same requestId"
        for arrived in batch.requests:
            requests.refuse(turn, arrived, Code.STORAGE_FAILED, message)
        return turn.effects

    def _try_to_write(self) -> None:
        """Tries whether something can be written again. What was missed meanwhile is asked for by name: the launcher
        registers anew."""
        turn = Turn(self._world, self._store)
        try:
            with self._transaction(turn):
                turn.store.run("touch_life", instance=self._world.instance, now_ms=turn.now_ms)
        except StorageBlocked:
            return
        self._world.storage_error = None
        log.info("storage.recovered", "the database can be written again")
        launcher_desk.close_epoch(turn, "the database could not be written for a while")
        self._emission.send(turn.effects)

    def stop(self) -> None:
        """Nothing is started any more; what was launched and is not answered is waited for by the service."""
        self._world.mode = Mode.STOPPING

    def reload(self) -> None:
        """Installs the configuration file as it is now."""
        turn = Turn(self._world, self._store)
        service_commands.reload(turn)
        self._emission.send(turn.effects)

    @property
    def unanswered(self) -> int:
        return len(self._world.link.unanswered)


_BLOCKED = {Code.STORAGE_FULL: "storage.full", Code.STORAGE_MOVED: "storage.moved"}
_BEFORE = {
    Fact.REQUEST: "scheduler.before_request_commit",
    Fact.OUTCOME: "scheduler.before_outcome_commit",
}
_AFTER = {
    Fact.REQUEST: "scheduler.after_request_commit",
    Fact.ACTIVE: "scheduler.after_active_commit",
    Fact.OUTCOME: "scheduler.after_outcome_commit",
}


def _from_executor(turn: Turn, address: Address, body: bytes) -> None:
    executor_desk.handle(turn, address, run.decode_from_executor(body))


def _from_launcher(turn: Turn, address: Address, body: bytes) -> None:
    launcher_desk.handle(turn, address, launch.decode_from_launcher(body))


def _pass_failpoints(facts: set[Fact], points: dict[Fact, str]) -> None:
    for fact, point in points.items():
        if fact in facts:
            failpoints.hit(point)
