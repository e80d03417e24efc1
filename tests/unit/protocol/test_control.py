"""Frames of the control socket: answers are read as they were written, with or without a payload."""

import msgspec
import pytest

from cronward.protocol import control
from cronward.protocol.errors import ErrorBody


@pytest.mark.parametrize("payload", [b'{"a":1}', b"[]", b"null", b"7"])
def test_an_answer_is_read_as_it_was_written(payload: bytes) -> None:
    sent = control.Response(id="1", ok=True, payload=msgspec.Raw(payload))
    data = msgspec.json.encode(sent)
    assert msgspec.json.decode(data) == {"id": "1", "ok": True, "payload": msgspec.json.decode(payload)}
    assert msgspec.json.decode(data, type=control.Response) == sent


def test_an_error_has_no_payload() -> None:
    sent = control.Response(id=None, ok=False, error=ErrorBody("X", "no"))
    data = msgspec.json.encode(sent)
    assert b"payload" not in data
    assert msgspec.json.decode(data, type=control.Response) == sent


def test_an_event_is_read_as_it_was_written() -> None:
    sent = control.Event("cron", "i", 7, msgspec.Raw(b'{"runId":"r"}'))
    assert msgspec.json.decode(msgspec.json.encode(sent), type=control.Event) == sent


@pytest.mark.parametrize(
    "data", [b"", b"null", b"7", b"[]", b"{}", b'{"id":1}', b'{"id":1,"method":7}', b'{"id":{},"method":"x"}', b"\xff"]
)
def test_a_frame_that_is_no_request_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        control.decode_request(data)


def test_a_request_without_parameters_has_empty_ones() -> None:
    assert bytes(control.decode_request(b'{"id":1,"method":"cron.status"}').params) == b"{}"
