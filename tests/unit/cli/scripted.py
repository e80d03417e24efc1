"""A scheduler that says exactly what a test tells it to, on real sockets."""

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import zmq

from cronward.protocol.control import Request

Answer = Callable[[Request], list[bytes]]


class ScriptedRouter:
    """A ROUTER whose answers come from a function: none, one, several, or garbage. Keeps every request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.requests: list[Request] = []
        self.raw: list[bytes] = []
        self._answer: Answer = lambda request: [ok(request, {})]
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._stop = threading.Event()
        self._bound = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, answer: Answer) -> None:
        """Binds and answers from a thread, until `stop`."""
        self._answer = answer
        self._stop.clear()
        self._bound.clear()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        assert self._bound.wait(5)

    def stop(self) -> None:
        """Unbinds, as a scheduler that ends does."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(5)
            self._thread = None

    def close(self) -> None:
        self.stop()
        self._context.destroy(linger=0)

    def _serve(self) -> None:
        socket = self._context.socket(zmq.ROUTER)
        socket.setsockopt(zmq.LINGER, 200)
        socket.bind(f"ipc://{self.path}")
        self._bound.set()
        while not self._stop.is_set():
            if not socket.poll(10):
                continue
            peer, data = socket.recv_multipart()
            request = msgspec.json.decode(data, type=Request)
            self.raw.append(data)
            self.requests.append(request)
            for body in self._answer(request):
                socket.send_multipart([peer, body])
        socket.close()


def ok(request: Request, payload: object) -> bytes:
    """The answer to `request` with this payload."""
    return msgspec.json.encode({"type": "res", "id": request.id, "ok": True, "payload": payload})


def refusal(request: Request, code: str, message: str = "no", **details: object) -> bytes:
    error = {"code": code, "message": message, "details": details}
    return msgspec.json.encode({"type": "res", "id": request.id, "ok": False, "error": error})
