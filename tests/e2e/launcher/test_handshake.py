"""Registering, epochs, leaving."""

import signal
import time

from cronward.protocol import exits, launch
from cronward.protocol.launch import RefuseReason, RunState
from tests.e2e.launcher.rig import CONFIG, Rig
from tests.support.waiting import wait_until


def test_register_is_repeated_until_welcome(rig: Rig) -> None:
    daemon = rig.start()
    first = rig.expect(launch.Register)
    assert first.launcher.pid == daemon.pid
    assert rig.expect(launch.Register) == first
    inventory = rig.welcome([])
    assert inventory.runs == {}
    rig.forget(launch.Register)
    rig.wait_heartbeat()
    assert not [message for message in rig.inbox if isinstance(message, launch.Register)]


def test_the_launcher_is_ready_without_a_scheduler_and_leaves_at_once(rig: Rig) -> None:
    rig.go_deaf()
    daemon = rig.start()
    begun = time.monotonic()
    assert daemon.terminate() == exits.OK
    assert time.monotonic() - begun < 1
    rig.scratch.assert_nothing_left()


def test_inventory_is_repeated_until_reconciled(rig: Rig) -> None:
    rig.start()
    rig.expect(launch.Register)
    rig.epoch = 1
    rig.send(launch.Welcome("one", 1, CONFIG, ["unheard"]))
    assert rig.expect(launch.Inventory).runs == {"unheard": RunState.ABSENT}
    assert rig.expect(launch.Inventory).runs == {"unheard": RunState.ABSENT}


def test_a_second_welcome_replaces_the_first_and_an_older_one_is_dropped(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    rig.welcome([])
    rig.send(launch.Welcome("one", 1, CONFIG, []))
    rig.order("run")
    rig.expect(launch.Accepted, "run")
    assert not [message for message in rig.inbox if isinstance(message, launch.Inventory) and message.epoch == 1]


def test_launches_of_another_epoch_or_instance_are_refused(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    rig.welcome([])
    rig.order("old", epoch=rig.epoch - 1)
    rig.order("strange", instance="two")
    assert rig.expect(launch.Refused, "old").reason is RefuseReason.STALE_EPOCH
    assert rig.expect(launch.Refused, "strange").reason is RefuseReason.STALE_EPOCH
    assert not rig.directory("old").exists()


def test_register_again_and_a_beat_of_another_epoch_start_over(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    rig.send(launch.RegisterAgain())
    rig.reconciled()
    rig.forget(launch.Register)
    rig.send(launch.Beat("one", rig.epoch + 5))
    rig.reconciled()


def test_silence_starts_over_and_a_new_scheduler_is_found(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    pid = rig.started("run")
    rig.go_deaf()
    rig.listen()
    rig.instance, rig.epoch = "two", 0
    assert rig.reconciled(["run", "other"]).runs == {"run": RunState.HELD, "other": RunState.ABSENT}
    rig.order("run")
    assert rig.expect(launch.Accepted, "run").executor_pid == pid


def test_garbage_is_logged_and_costs_nothing(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    rig.send_bytes(b"\xff garbage")
    rig.order("run")
    rig.expect(launch.Accepted, "run")
    assert daemon.events("launcher.bad_message")


def test_leaving_is_answered_and_starts_what_came_before_the_answer(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    daemon.signal(signal.SIGTERM)
    rig.expect(launch.Leaving)
    runs = [f"run-{number}" for number in range(4)]
    for run in runs:
        rig.order(run)
    rig.send(launch.Left(rig.instance, rig.epoch))
    for run in runs:
        rig.expect(launch.Accepted, run)
    assert daemon.process.wait(10) == exits.OK


def test_an_unanswered_leaving_is_given_up(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    begun = time.monotonic()
    assert daemon.terminate() == exits.OK
    assert 1.9 < time.monotonic() - begun < 4


def test_without_a_scheduler_leaving_waits_for_nobody(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    rig.go_deaf()
    begun = time.monotonic()
    assert daemon.terminate() == exits.OK
    assert time.monotonic() - begun < 1.8, "sooner than an answer would be given up"


def test_leaving_touches_no_run(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    pid = rig.started("run")
    daemon.signal(signal.SIGINT)
    rig.expect(launch.Leaving)
    rig.send(launch.Left(rig.instance, rig.epoch))
    assert daemon.process.wait(10) == exits.OK
    wait_until(lambda: rig.scratch.processes() == [pid], "idle executors end, the busy one stays")


def test_sighup_means_nothing(rig: Rig) -> None:
    daemon = rig.start()
    rig.reconciled()
    daemon.signal(signal.SIGHUP)
    rig.order("run")
    rig.expect(launch.Accepted, "run")


def test_a_second_launcher_is_refused_quickly_and_names_the_holder(rig: Rig) -> None:
    first = rig.start()
    second = rig.start_unready()
    assert second.process.wait(10) == exits.ALREADY_RUNNING
    lines = second.events("launcher.cannot_start")
    assert len(lines) == 1
    assert f"process {first.pid}" in str(lines[0]["message"])


def test_configure_takes_newer_versions_only(rig: Rig) -> None:
    rig.start()
    rig.reconciled()
    old = launch.LauncherConfig(version=1, ready=5, executors_max=8, grace_ms=500)
    new = launch.LauncherConfig(version=2, ready=3, executors_max=8, grace_ms=500)
    rig.send(launch.Configure(new))
    rig.send(launch.Configure(old))
    while rig.wait_heartbeat().pool.ready != 3:
        pass
    assert rig.wait_heartbeat().pool.starting == 0
