"""`cronward up` with the real daemons: stopping, crashing, being killed, being started twice."""

import os
import signal
import threading

import msgspec
import pytest

from cronward.cli.processes import holder
from cronward.protocol import exits
from cronward.protocol.clock import SystemClock
from cronward.protocol.status_client import Silence, Snapshot, StatusClient
from tests.e2e.cli.service import Service
from tests.support.waiting import now_ms, wait_until


def daemon_pid(service: Service, name: str) -> int:
    lock = {"scheduler": service.paths.scheduler_lock, "launcher": service.paths.launcher_lock}[name]
    identity = holder(lock)
    assert identity is not None
    return identity.pid


def test_an_idle_service_stops_within_a_second_and_leaves_nothing(service: Service) -> None:
    """B142."""
    service.start()
    began = now_ms()
    assert service.stop_up(signal.SIGINT) == exits.OK
    assert now_ms() - began < 1_000
    service.assert_nothing_left()


def test_a_stop_waits_for_runs_and_names_them(service: Service) -> None:
    service.start()
    run_id = service.start_job(stay_ms=1_500)
    assert service.stop_up() == exits.OK
    assert service.sidelog.count("job:end") == 1
    assert "waiting for 1 run: " in str(service.events("up.waiting")[0]["message"])
    service.start()
    assert service.run_view(run_id).state == "ok"


def test_a_second_signal_does_not_wait_and_the_next_start_adopts_the_run(service: Service) -> None:
    """B143: a stop is never held up by a run, and no run is lost by it."""
    service.start()
    run_id = service.start_job(stay_ms=3_000)
    service.ups[-1].send_signal(signal.SIGTERM)
    service.wait_event("up.draining")
    began = now_ms()
    assert service.stop_up() == exits.OK
    assert now_ms() - began < 2_500
    service.start()
    assert service.wait_for_run(run_id).state == "ok"
    assert service.sidelog.count("job:start") == 1


@pytest.mark.parametrize("name", ["scheduler", "launcher"])
def test_a_killed_daemon_is_started_again_and_its_run_goes_on(service: Service, name: str) -> None:
    service.start()
    run_id = service.start_job(stay_ms=1_000)
    os.kill(daemon_pid(service, name), signal.SIGKILL)
    service.wait_event("up.restart")
    assert service.wait_for_run(run_id).state == "ok"
    assert service.sidelog.count("job:start") == 1


def test_a_command_outlives_a_restart_of_the_scheduler(service: Service) -> None:
    """The request is repeated with its requestId until the new scheduler answers: one job, not two."""
    service.start()
    scheduler = daemon_pid(service, "scheduler")
    os.kill(scheduler, signal.SIGSTOP)
    killer = threading.Timer(0.5, os.kill, (scheduler, signal.SIGKILL))
    killer.start()
    done = service.run("add", "every 1d", "--name", "once", "--", "true")
    killer.join()
    assert done.returncode == 0, done
    assert service.ask("list")["total"] == 1


def test_a_dashboard_survives_the_restart_with_a_new_snapshot(service: Service) -> None:
    service.start()
    with StatusClient(service.paths, SystemClock()) as status:
        first = status.wait(5_000)
        assert isinstance(first, Snapshot)
        os.kill(daemon_pid(service, "scheduler"), signal.SIGKILL)
        update = status.wait(10_000)
        while not isinstance(update, Snapshot):
            assert update is None or isinstance(update, Silence) or update.instance == first.view.instance
            update = status.wait(10_000)
        assert update.view.instance != first.view.instance


def test_the_service_goes_on_when_up_is_killed_and_a_new_one_says_who_holds_it(service: Service) -> None:
    service.start()
    pids = {daemon_pid(service, "scheduler"), daemon_pid(service, "launcher")}
    service.stop_up(signal.SIGKILL)
    assert service.run("status").returncode == 0
    assert service.start_up().wait(10) == exits.ALREADY_RUNNING
    message = str(service.wait_event("up.held")[0]["message"])
    assert all(f"process {pid} holds" in message for pid in pids)
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    service.assert_nothing_left()


def test_a_bad_configuration_ends_up_with_its_code(service: Service) -> None:
    (service.root / "cronward.toml").write_text("capacity.runs = -1\n")
    assert service.start_up().wait(10) == exits.CONFIG
    service.assert_nothing_left()


def test_hangup_makes_the_configuration_be_read_again(service: Service) -> None:
    service.start()
    (service.root / "cronward.toml").write_text("capacity.runs = 3\n")
    service.ups[-1].send_signal(signal.SIGHUP)
    wait_until(lambda: service.status().capacity == 3, "the new capacity is in force")


def test_a_backup_is_restored_while_the_service_is_stopped(service: Service) -> None:
    service.start()
    backup = str(service.root / "b.db")
    service.run("add", "every 1d", "--name", "before", "--", "true")
    assert service.run("backup", backup).returncode == 0
    service.run("add", "every 1d", "--name", "after", "--", "true")
    refused = service.run("restore", backup)
    assert refused.returncode == exits.ALREADY_RUNNING
    assert refused.stderr.startswith("cronward: another scheduler uses")
    service.stop_up()
    damaged = service.run("restore", str(service.root / "cronward.toml"), "--json")
    assert damaged.returncode == exits.DATABASE
    assert '"code":"DB_INIT_FAILED"' in damaged.stderr
    restored = service.run("restore", backup)
    assert restored.returncode == 0
    assert restored.stdout.splitlines()[0] == f"the database is now that of {backup}"
    assert "is kept: " in restored.stdout
    service.start()
    jobs = service.ask("list")["jobs"]
    assert isinstance(jobs, list)
    assert [job["name"] for job in jobs] == ["before"]


def test_doctor_tells_a_stopped_service_from_a_broken_database(service: Service) -> None:
    service.start()
    service.stop_up()
    stopped = service.run("doctor", "--json")
    levels = {each["check"]: each["level"] for each in msgspec.json.decode(stopped.stdout)["findings"]}
    assert (stopped.returncode, levels["scheduler"], levels["database"]) == (1, "fail", "ok")
    with service.paths.database.open("r+b") as database:
        database.seek(4096)
        database.write(b"\xff" * 8192)
    broken = msgspec.json.decode(service.run("doctor", "--json").stdout)["findings"]
    assert next(each["level"] for each in broken if each["check"] == "database") == "fail"


def test_drain_waits_and_resume_undoes_it(service: Service) -> None:
    service.start()
    service.start_job(stay_ms=60_000)
    done = service.run("drain", "--timeout", "300ms")
    assert (done.returncode, "1 run still active" in done.stderr) == (1, True), done
    assert service.run("drain", "--kill").returncode == 0
    assert service.status().active == 0
    service.run("resume")
    assert service.status().mode == "running"
