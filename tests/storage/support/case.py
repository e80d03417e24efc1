"""One case: a kind of transaction, a fault, and the operation at which it happens."""

import shutil
import tempfile
from pathlib import Path

import msgspec

from cronward.protocol.errors import StartupError
from cronward.protocol.views import ServiceStatus
from cronward.scheduler.database import close_database, open_database
from cronward.scheduler.store import StorageBlocked, StorageFailed
from tests.storage.support import checks
from tests.storage.support.disk import Disk
from tests.storage.support.faults import SPACE, Fault, Op
from tests.storage.support.kinds import Kind
from tests.storage.support.picture import picture
from tests.storage.support.rig import Rig

MEMORY = Path("/dev/shm")


def scratch() -> Path:
    """A new directory, in memory where there is one: the real disk plays no part here."""
    return Path(tempfile.mkdtemp(prefix="cw-storage-", dir=MEMORY if MEMORY.is_dir() else None))


class Case(msgspec.Struct, frozen=True):
    """`index` counts the operations of the kind from 0; `seed` decides what is torn."""

    kind: Kind
    fault: Fault
    index: int
    seed: int

    def __str__(self) -> str:
        return f"{self.kind.name}: {self.fault} at {self.index}, seed {self.seed}"


def make_base(root: Path) -> None:
    """A database with some history, closed in good order."""
    with Disk() as disk:
        rig = Rig(root, disk, lives_before=0)
        rig.reconcile_truly()
        for number in range(3):
            rig.add(name=f"base {number}")
        rig.report(rig.start(rig.add(name="base ran")))
        rig.end()


def operations(kind: Kind, base: Path, root: Path) -> list[Op]:
    """What the kind asks of a disk that works."""
    with Disk() as disk:
        rig = _arranged(kind, base, root, disk)
        try:
            disk.watch()
            kind.act(rig)
            disk.rest()
            found = disk.operations
            if not kind.opens:
                rig.turns()
            kind.done(rig)
            rig.end_quietly()
        finally:
            rig.unplant()
        return found


def run_case(case: Case, base: Path, root: Path, rig_type: type[Rig] = Rig) -> list[str]:
    """What is wrong; empty if every promise was kept."""
    with Disk() as disk:
        rig = _arranged(case.kind, base, root, disk, rig_type)
        try:
            disk.watch(case.fault, case.index, case.seed)
            ended = _act(case, rig)
            disk.rest()
            wrong = checks.honest(rig)
            if case.fault in SPACE and not case.kind.opens:
                wrong += ["the service ended"] if ended else _outlives(case, rig)
            wrong += _restart(case, rig)
        except AssertionError as error:
            wrong = [f"assertion: {error}"]
        finally:
            rig.unplant()
        return wrong


def _arranged(kind: Kind, base: Path, root: Path, disk: Disk, rig_type: type[Rig] = Rig) -> Rig:
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(base, root)
    rig = rig_type(root, disk, kind.config)
    kind.arrange(rig)
    rig.start_history()
    return rig


def _act(case: Case, rig: Rig) -> bool:
    """True if the process ended: killed, or because it says that the database failed."""
    try:
        case.kind.act(rig)
    except StorageFailed:
        return True
    except (StorageBlocked, StartupError):
        if not (case.kind.opens or rig.disk.dead):
            raise
        return True
    except Exception:
        if not (rig.disk.dead or case.kind.name == "end life"):  # what a dead process would have met says nothing
            raise
        return True
    return rig.disk.dead


def _outlives(case: Case, rig: Rig) -> list[str]:
    """No space: the service says so, goes on answering, and takes up its work when there is space."""
    wrong = []
    if (
        case.fault is Fault.FULL and rig.history.refused
    ):  # by the last commit: there may have been space for a small one
        status = _status(rig)
        if status.storage_error is None:
            wrong.append("the status does not tell of the full disk")
        if not rig.request("cron.list").ok:
            wrong.append("a read was refused")
    rig.disk.mend()
    rig.turns()
    if _status(rig).storage_error is not None:
        wrong.append("there is space and the status does not know")
    return wrong + _resume(case, rig)


def _status(rig: Rig) -> ServiceStatus:
    answer = rig.request("service.status")
    assert answer.ok, answer.error
    assert isinstance(answer.payload, msgspec.Raw)
    return msgspec.json.decode(answer.payload, type=ServiceStatus)


def _restart(case: Case, rig: Rig) -> list[str]:
    """The next process finds the database in order, and nothing that was told is missing."""
    rig.abandon()
    try:
        connection = open_database(rig.paths.database)
    except StartupError as error:
        return [f"the database does not open: {error}"]
    wrong = checks.consistent(connection)
    if case.kind.builds:
        pass  # its opening has made it complete just now; `done` looks at it
    elif case.fault is Fault.SYNC_LIES:  # only the order of commits can be asked of such a disk
        wrong += checks.one_of(picture(connection), rig.past + rig.history.committed)
    else:
        in_flight = [] if rig.history.in_flight is None else [rig.history.in_flight]
        wrong += checks.one_of(picture(connection), in_flight + rig.history.committed[-1:])
        wrong += checks.kept(rig, connection)
    close_database(connection)
    rig.begin()
    wrong += _resume(case, rig)
    rig.end_quietly()
    return wrong


def _resume(case: Case, rig: Rig) -> list[str]:
    """Peers repeat themselves; what the kind is for comes to its end."""
    if case.kind.opens:
        case.kind.done(rig)
        return []
    rig.reconcile_truly()
    case.kind.act(rig)
    rig.turns()
    case.kind.done(rig)
    rig.note_launches()
    forgetful = case.fault is Fault.SYNC_LIES  # a ledger that lost a commit starts its runs again
    return checks.honest(rig) + ([] if forgetful else checks.launched_once(rig))
