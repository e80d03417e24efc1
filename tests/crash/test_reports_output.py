"""Reports about output, environment and secrets, replayed on the real processes."""

import os
import subprocess
import sys

import msgspec

from cronward.protocol.config import CommandDefaults
from tests.support.instance import Instance
from tests.support.waiting import wait_until

RUNS = 400
"""Each is a line in the scheduler's log: together more than a pipe holds."""


def test_b158_a_log_that_nobody_reads_holds_nothing_up(instance: Instance) -> None:
    """B158: the reader of the service's own log stands still; the schedule goes on."""
    read_fd, write_fd = os.pipe()
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "cronward.scheduler", "serve"],
        env=instance.environ,
        stdin=subprocess.DEVNULL,
        stderr=write_fd,
        start_new_session=True,
    )
    os.close(write_fd)
    try:
        wait_until(instance.paths.control.exists, "the scheduler has bound its sockets")
        instance.start_launcher()
        instance.wait_reconciled()
        due_ms = instance.soon_ms()
        for number in range(RUNS):
            instance.add_at(instance.sidelog.command(f"job{number}"), due_ms)
        instance.wait_idle()
        assert len(instance.sidelog.entries()) == RUNS
        with open(read_fd, "rb") as reader:
            kept = reader.read1(1 << 20)
        assert kept.count(b"run.settled") < RUNS, "the pipe was full: otherwise this shows nothing"
    finally:
        scheduler.kill()
        scheduler.wait(10)


def test_b154_output_that_is_no_text_is_valid_json_for_clients(instance: Instance) -> None:
    """B154: what is not UTF-8 is replaced in views, and kept as it is on disk."""
    instance.start()
    run_id = instance.run_now(instance.add_command_job(["printf", r"a\307\377\n"]))
    view = instance.wait_for_run(run_id)
    assert view.stdout is not None
    assert (view.state, view.stdout.head) == ("ok", "a\ufffd\ufffd\n")
    assert (instance.paths.run_directory(run_id) / "stdout").read_bytes() == b"a\xc7\xff\n"


def test_b166_a_run_by_hand_has_the_environment_of_a_scheduled_one(instance: Instance) -> None:
    """B166: trying a job by hand shows what the schedule will do; the PATH is the configured one."""
    instance.start()
    words = ["sh", "-c", "env | grep -v CRONWARD_RUN_ID | sort"]
    by_hand = instance.wait_for_run(instance.run_now(instance.add_command_job(words)))
    job = instance.add_at(words, instance.soon_ms(), {"deleteAfterRun": False})
    wait_until(lambda: [run.state for run in instance.runs(job)] == ["ok"], "the scheduled run has ended")
    (scheduled,) = instance.runs(job)
    assert by_hand.stdout is not None
    assert scheduled.stdout is not None
    assert by_hand.stdout.head == scheduled.stdout.head
    assert f"PATH={CommandDefaults().path}\n" in by_hand.stdout.head


def test_b175_a_secret_is_in_no_answer_no_log_and_no_file(instance: Instance) -> None:
    """B175: who reads gets the name and the source, never the value; here the job prints it, too."""
    secret = "hunter2/open+sesame"
    instance.environ["VAULT_TOKEN"] = secret
    instance.start()
    payload = {"secrets": {"TOKEN": {"env": "VAULT_TOKEN"}}}
    job = instance.add_command_job(["sh", "-c", 'echo "$TOKEN"; echo "$TOKEN" >&2; exit 3'], payload=payload)
    run_id = instance.run_now(job)
    assert instance.wait_for_run(run_id).exit_code == 3
    answers = [
        instance.client().call(method, msgspec.Raw, params)
        for method, params in (
            ("cron.get", {"id": job.id}),
            ("cron.list", {"includeDisabled": True}),
            ("cron.runs", {"live": True}),
            ("run.get", {"runId": run_id}),
            ("status.snapshot", {}),
        )
    ]
    assert b'"secrets":{"TOKEN":{"env":"VAULT_TOKEN"}}' in bytes(answers[0])
    instance.stop()
    kept = [path.read_bytes() for path in instance.root.rglob("*") if path.is_file()]
    assert len(kept) > 5
    assert not [text for text in (*map(bytes, answers), *kept) if secret.encode() in text]
