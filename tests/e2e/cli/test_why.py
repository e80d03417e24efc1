"""`cronward why` with real daemons and real time: what happens to a job within seconds, explained afterwards."""

import signal

from cronward.protocol.clock import SystemClock
from tests.e2e.cli.service import Service
from tests.support.waiting import wait_until


def cause(service: Service, *arguments: str) -> str:
    return str(service.ask("why", *arguments)["cause"])


def ms(value: object) -> int:
    assert isinstance(value, int)
    return value


def wait_for(service: Service, job: str, wanted: str) -> dict[str, object]:
    """The answer about the last slot, once it has that cause."""
    wait_until(lambda: cause(service, job) == wanted, f"why {job}: {wanted}", deadline_s=20)
    return service.ask("why", job)


def test_a_job_through_its_life(service: Service) -> None:
    service.start()
    service.ask("add", "every 1s", "--name", "tick", "--", "true")
    ran = wait_for(service, "tick", "ran")
    slot_ms = ms(ran["slotMs"])
    text = service.run("why", "tick", str(slot_ms)).stdout
    assert "it ran, " in text
    assert "ended ok" in text

    # paused
    service.ask("pause")
    paused = service.ask("why", "tick", "+0s")
    paused_slot = wait_for(service, "tick", "waiting")["slotMs"]
    assert paused["jobName"] == "tick"
    service.ask("resume")
    wait_until(lambda: cause(service, "tick", str(paused_slot)) != "waiting", "the paused slot is told", 20)
    told = service.ask("why", "tick", str(paused_slot))
    assert "paused" in (told["cause"], told.get("delayedBy"))
    assert str(told["by"]).startswith("uid ")

    # down
    assert service.stop_up(signal.SIGTERM) == 0
    stopped_ms = SystemClock().wall_ms()
    wait_until(lambda: SystemClock().wall_ms() > stopped_ms + 2_500, "two slots have passed", 10)
    service.start_up()
    service.wait_event("up.ready", 2)
    service.wait_reconciled()
    down_slot = (stopped_ms - slot_ms) // 1000 * 1000 + slot_ms + 1000
    wait_until(lambda: cause(service, "tick", str(down_slot)) == "down", "the slot was missed", 20)
    assert "the scheduler was down from" in service.run("why", "tick", str(down_slot)).stdout

    # disabled, and edited
    service.ask("disable", "tick")
    disabled = wait_for(service, "tick", "disabled")
    assert str(disabled["by"]).startswith("uid ")
    service.ask("edit", "tick", "--every", "1d")
    assert cause(service, "tick", str(ms(disabled["slotMs"]) + 1)) == "not_a_slot"


def test_consumed_while_an_earlier_run_goes_on(service: Service) -> None:
    service.start()
    service.ask("add", "every 1s", "--name", "slow", "--", "sleep", "4")
    consumed = wait_for(service, "slow", "consumed")
    run = consumed["run"]
    assert isinstance(run, dict)
    assert run["state"] == "active"
    assert ms(run["slotMs"]) < ms(consumed["slotMs"])


def test_questions_that_cannot_be_answered(service: Service) -> None:
    service.start()
    service.ask("add", "0 9 * * *", "--tz", "Europe/Berlin", "--name", "daily", "--", "true")
    assert cause(service, "daily", "2030-06-01T09:00") == "coming"
    assert cause(service, "daily", "2030-06-01T09:00Z") == "not_a_slot"
    assert "not_yet_created" in cause(service, "daily", "2020-06-01T09:00")
    refused = service.run("why", "daily", "noonish")
    assert refused.returncode == 2
    assert "'noonish' is no TIME: use ISO 8601" in refused.stderr
    assert service.run("why", "nobody").returncode != 0
