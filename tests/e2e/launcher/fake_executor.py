"""A scripted executor: speaks `protocol.pair`, and does what the run's job (JSON) tells it, without a scheduler.

{"do": "ok" | "unacknowledged" | "no_outcome" | "hang" | "die" | "over", "child": bool, "unfit": bool, "rss_kib": int}
`ok` saves an outcome and says free; `hang` holds the run until end-of-file, SIGTERM or a cancel; `over` saves the
outcome and holds on; `die` ends at once; `child` leaves a process behind that carries the run's id.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import FrameType

import msgspec

from cronward.protocol import identity, outcome, pair, rundir


class Script(msgspec.Struct):
    do: str = "ok"
    child: bool = False
    unfit: bool = False
    rss_kib: int = 1000


def main() -> None:
    if os.environ.get("FAKE_EXECUTOR") == "broken":
        sys.exit(3)
    end = socket.socket(fileno=int(sys.argv[1]))
    end.send(pair.encode(pair.Ready(identity.own_identity())))
    while True:
        packet, fds, _, _ = socket.recv_fds(end, pair.PACKET_MAX_BYTES, 1)
        if not packet:
            return
        message = pair.decode_to_executor(packet)
        if isinstance(message, pair.HandOver):
            run(end, message, fds[0])


def run(end: socket.socket, order: pair.HandOver, lock_fd: int) -> None:
    intent = rundir.decode_intent((Path(order.directory) / rundir.INTENT).read_bytes())
    assert intent.run == order.run
    script = msgspec.json.decode(intent.job, type=Script)
    if script.child:
        child = subprocess.Popen(
            ["setsid", "sleep", "300"], env=os.environ | {"CRONWARD_RUN_ID": order.run}, stdin=subprocess.DEVNULL
        )
        (Path(order.directory) / "child").write_text(str(child.pid))
    if script.do == "die":
        os._exit(7)
    acknowledged = True
    if script.do == "hang":
        hang(end, order.run)
    if script.do in ("no_outcome", "unacknowledged"):
        acknowledged = False
    if script.do != "no_outcome":
        save(order, lock_fd)
    if script.do == "over":
        hang(end, order.run)
    os.close(lock_fd)
    end.send(pair.encode(pair.Free(order.run, acknowledged, not script.unfit, script.rss_kib)))


def hang(end: socket.socket, run_id: str) -> None:
    """Until SIGTERM, end-of-file or a cancel of this run."""

    def terminated(number: int, frame: FrameType | None) -> None:
        raise InterruptedError

    signal.signal(signal.SIGTERM, terminated)
    try:
        while packet := end.recv(pair.PACKET_MAX_BYTES):
            if pair.decode_to_executor(packet) == pair.CancelRun(run_id, "because"):
                return
        signal.pause()  # a run outlives its launcher
    except InterruptedError:
        return


def save(order: pair.HandOver, lock_fd: int) -> None:
    directory = Path(order.directory)
    os.pwrite(lock_fd, rundir.TASK_OVER, 0)
    saved = outcome.Outcome(order.run, outcome.Status.OK, None, "", 1, 2, 1)
    (directory / rundir.OUTCOME_NEW).write_bytes(rundir.seal(outcome.encode(saved)))
    (directory / rundir.OUTCOME_NEW).rename(directory / rundir.OUTCOME)


if __name__ == "__main__":
    main()
