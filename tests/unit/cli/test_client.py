"""ControlClient against a scheduler that is late, lost, confused, stopping, replaced or missing."""

import threading
from collections.abc import Iterator

import msgspec
import pytest

from cronward.cli.main import main
from cronward.protocol import client as client_module
from cronward.protocol import exits
from cronward.protocol.client import ControlClient, Unanswered
from cronward.protocol.clock import SystemClock
from cronward.protocol.control import JobRef, Request
from cronward.protocol.errors import Code, CronwardError, Unreachable
from cronward.protocol.paths import Paths
from cronward.protocol.views import CancelAnswer
from tests.unit.cli.scripted import ScriptedRouter, ok, refusal

CLOCK = SystemClock()
NOTHING: dict[str, object] = {}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "REPEAT_MS", 80)
    monkeypatch.setattr(client_module, "STOPPING_REPEAT_MS", 40)
    monkeypatch.setattr(client_module, "FIRST_CONTACT_MS", 300)


@pytest.fixture
def client(paths: Paths) -> Iterator[ControlClient]:
    with ControlClient(paths.control, CLOCK) as made:
        yield made


def test_answers_come_typed_and_requests_are_encoded_as_the_protocol_says(
    control: ScriptedRouter, client: ControlClient
) -> None:
    control.start(lambda request: [ok(request, {"runId": "r1", "result": "requested", "new": 1})])
    answer = client.request("run.cancel", JobRef(id="x"), CancelAnswer)
    assert answer == CancelAnswer("r1", "requested")
    sent = msgspec.json.decode(control.raw[0])
    assert (sent["type"], sent["method"], sent["params"]) == ("req", "run.cancel", {"id": "x"})


def test_a_refusal_keeps_its_code_and_details(control: ScriptedRouter, client: ControlClient) -> None:
    control.start(lambda request: [refusal(request, "CRON_JOB_NOT_FOUND", "no such job", jobId="x")])
    with pytest.raises(CronwardError) as caught:
        client.call("cron.get", NOTHING)
    assert (caught.value.code, caught.value.details) == (Code.JOB_NOT_FOUND, {"jobId": "x"})


def test_a_code_of_a_newer_scheduler_is_internal_with_the_real_one_beside_it(
    control: ScriptedRouter, client: ControlClient
) -> None:
    control.start(lambda request: [refusal(request, "QUOTA_EXCEEDED", "too many")])
    with pytest.raises(CronwardError, match="too many") as caught:
        client.call("cron.add", NOTHING)
    assert (caught.value.code, caught.value.details) == (Code.INTERNAL, {"code": "QUOTA_EXCEEDED"})


def test_a_lost_answer_makes_the_same_request_come_again(control: ScriptedRouter, client: ControlClient) -> None:
    control.start(lambda request: [ok(request, {"done": True})] if len(control.raw) == 3 else [])
    assert client.call("cron.add", {"requestId": "q"}) == b'{"done":true}'
    assert len(set(control.raw)) == 1
    assert len(control.raw) == 3


def test_what_must_not_be_repeated_is_sent_once(control: ScriptedRouter, client: ControlClient) -> None:
    control.start(lambda request: [])
    with pytest.raises(Unanswered, match="may still act"):
        client.call("service.backup", NOTHING, 300, repeat=False)
    assert len(control.raw) == 1


def test_late_answers_to_earlier_requests_are_not_taken_for_this_one(
    control: ScriptedRouter, client: ControlClient
) -> None:
    def answer(request: Request) -> list[bytes]:
        if request.method == "first":
            return []
        return [ok(control.requests[0], {"of": "first"}), ok(request, {"of": "second"})]

    control.start(answer)
    with pytest.raises(Unanswered):
        client.call("first", NOTHING, 60, repeat=False)
    assert client.call("second", NOTHING) == b'{"of":"second"}'


@pytest.mark.parametrize("garbage", [b"", b"\xff\x00", b"{", b"[]", b'{"id":1}', b'{"type":"res","id":null,"ok":true}'])
def test_garbage_costs_nothing(control: ScriptedRouter, client: ControlClient, garbage: bytes) -> None:
    control.start(lambda request: [garbage, ok(request, 1)])
    assert client.call("cron.list", NOTHING) == b"1"


def test_an_answer_with_neither_payload_nor_error_is_told(control: ScriptedRouter, client: ControlClient) -> None:
    control.start(lambda request: [msgspec.json.encode({"type": "res", "id": request.id, "ok": True})])
    with pytest.raises(CronwardError, match="neither"):
        client.call("cron.list", NOTHING)


def test_an_answer_of_another_shape_names_the_type(control: ScriptedRouter, client: ControlClient) -> None:
    control.start(lambda request: [ok(request, {"runId": 7})])
    with pytest.raises(CronwardError, match="CancelAnswer"):
        client.request("run.cancel", NOTHING, CancelAnswer)


def test_a_missing_scheduler_is_known_soon(client: ControlClient) -> None:
    began = CLOCK.mono_ms()
    with pytest.raises(Unreachable, match="no scheduler answers"):
        client.call("cron.list", NOTHING, 10_000)
    assert CLOCK.mono_ms() - began < 2_000


def test_a_scheduler_that_says_nothing_is_there_but_unanswered(control: ScriptedRouter, client: ControlClient) -> None:
    control.start(lambda request: [])
    with pytest.raises(Unanswered, match=r"cron\.list within 0\.3 s"):
        client.call("cron.list", NOTHING, 300)


def test_a_stopping_scheduler_is_asked_again_in_its_successor(control: ScriptedRouter, client: ControlClient) -> None:
    control.start(lambda request: [refusal(request, "STOPPING")] if len(control.raw) < 3 else [ok(request, "new")])
    assert client.call("cron.add", {"requestId": "q"}) == b'"new"'


def test_a_scheduler_that_only_stops_is_told_as_such(control: ScriptedRouter, client: ControlClient) -> None:
    control.start(lambda request: [refusal(request, "STOPPING", "going away")])
    with pytest.raises(CronwardError, match="going away"):
        client.call("cron.add", NOTHING, 300)


def test_a_request_outlives_a_restart_of_the_scheduler(control: ScriptedRouter, client: ControlClient) -> None:
    """The first life takes the request and dies with it; the second life gets it again and answers."""
    successor = ScriptedRouter(control.path)

    def die(request: Request) -> list[bytes]:
        control._stop.set()
        return []

    control.start(die)

    def restart() -> None:
        assert control._thread is not None
        control._thread.join(5)
        successor.start(lambda request: [ok(request, "second life")])

    restarter = threading.Thread(target=restart)
    restarter.start()
    try:
        assert client.call("cron.add", {"requestId": "q"}, 5_000) == b'"second life"'
        assert control.raw == successor.raw[:1]
    finally:
        restarter.join()
        successor.close()


def test_a_wait_that_is_too_short_to_find_a_scheduler_says_so(paths: Paths, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--timeout", "5"]) == exits.UNREACHABLE
    assert f"no scheduler has answered on {paths.query} within 5 ms" in capsys.readouterr().err
