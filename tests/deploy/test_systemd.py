"""Both services as systemd would run them, with this test in its place: real processes, control groups, signals."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cronward.protocol.paths import Paths
from cronward.protocol.views import RunView
from tests.support.installation import Installation
from tests.support.systemd import Service, Unit, cgroup2, remove_group
from tests.support.waiting import wait_until

STAY_MS = 1500
WATCHDOG_S = 3.0
GROUPS = cgroup2()

pytestmark = pytest.mark.skipif(GROUPS is None, reason="no control groups can be made here")


class Systemd(Installation):
    """The two services of one machine below a scratch root."""

    def __init__(self, root: Path, groups: Path) -> None:
        super().__init__(root, Paths(root / "var/lib/cronward", root / "run/cronward"))
        (root / "cronward.toml").touch()
        deploy = Path(__file__).parents[2] / "deploy"
        self.groups = groups
        self.scheduler = Service(Unit(deploy / "cronward-scheduler.service"), root, groups, WATCHDOG_S)
        self.launcher = Service(Unit(deploy / "cronward-launcher.service"), root, groups, WATCHDOG_S)

    def start(self) -> None:
        self.scheduler.start()
        self.launcher.start()
        self.wait_reconciled()

    def close(self) -> None:
        super().close()
        self.launcher.close()
        self.scheduler.close()
        remove_group(self.groups)


@pytest.fixture
def machine() -> Iterator[Systemd]:
    assert GROUPS is not None
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cw-") as directory:
        made = Systemd(Path(directory), GROUPS / f"cronward-test-{os.getpid()}")
        try:
            made.start()
            yield made
        finally:
            made.close()


def assert_ran_once(machine: Systemd, run: RunView) -> None:
    assert run.state == "ok", run
    assert [entry.label for entry in machine.sidelog.entries()] == ["job:start", "job:end"]


def test_a_run_survives_a_restart_of_the_launcher(machine: Systemd) -> None:
    run_id = machine.start_job(STAY_MS)
    main = machine.launcher.main
    machine.launcher.restart()
    assert machine.launcher.main != main
    assert_ran_once(machine, machine.wait_for_run(run_id))


def test_a_run_survives_a_restart_of_the_scheduler(machine: Systemd) -> None:
    run_id = machine.start_job(STAY_MS)
    machine.scheduler.restart()
    assert_ran_once(machine, machine.wait_for_run(run_id))


def test_a_run_ends_well_while_both_are_down(machine: Systemd) -> None:
    run_id = machine.start_job(STAY_MS)
    # the order of a stop of the target: the launcher is After= the scheduler
    assert machine.launcher.stop() == 0
    assert machine.scheduler.stop() == 0
    assert machine.paths.runtime.is_dir()
    wait_until(lambda: machine.sidelog.count("job:end") == 1, "the job ends by itself")
    machine.start()
    assert_ran_once(machine, machine.wait_for_run(run_id))


def test_a_reload_installs_the_configuration_as_it_is_now(machine: Systemd) -> None:
    (machine.root / "cronward.toml").write_text("[capacity]\nruns = 3\n")
    machine.scheduler.reload()
    wait_until(lambda: machine.status().capacity == 3, "the new capacity is in force", poll_s=0.02)


@pytest.mark.parametrize("process", ["scheduler", "launcher"])
def test_the_main_process_feeds_its_watchdog(machine: Systemd, process: str) -> None:
    service = machine.scheduler if process == "scheduler" else machine.launcher
    wait_until(lambda: service.notified("WATCHDOG=1"), f"the {process} feeds its watchdog", WATCHDOG_S)


def test_jobs_run_below_the_launchers_group_and_without_systemds_variables(machine: Systemd) -> None:
    job = machine.add_command_job(["sh", "-c", "cat /proc/self/cgroup; env"])
    run = machine.wait_for_run(machine.run_now(job))
    assert run.stdout is not None
    said = run.stdout.head + run.stdout.tail
    assert f"/{machine.groups.name}/cronward-launcher.service/" in said
    for name in ("NOTIFY_SOCKET", "WATCHDOG", "INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "CRONWARD_STATE"):
        assert name not in said
    assert machine.launcher.main is not None
    assert machine.launcher.main.pid in machine.launcher.pids()
