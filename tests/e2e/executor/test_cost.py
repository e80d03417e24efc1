"""What an executor costs: imports, size, CPU of a trivial run."""

import os
import subprocess
import sys
from pathlib import Path

from cronward.protocol import pair
from tests.support.executor_rig import Executor, Rig

FORBIDDEN = {
    "apsw",
    "asyncio",
    "click",
    "concurrent.futures",
    "croniter",
    "dataclasses",
    "importlib.metadata",
    "multiprocessing",
    "psutil",
    "rich",
    "subprocess",
    "tomllib",
}

RUN_CPU_MS_MAX = 3.0
"""The budget is 1.2 ms on a quiet machine (`make bench-burst` measures it); this catches a change of kind."""


def test_an_executor_imports_nothing_heavy() -> None:
    program = "import sys, cronward.executor.__main__; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert FORBIDDEN & set(result.stdout.split()) == set()


def test_the_user_switch_needs_the_standard_library_only() -> None:
    program = "import sys; sys.path.append(sys.argv[1]); import cronward.executor.switch_user; print(*sys.modules)"
    root = str(Path(__file__).parents[3] / ".roots")
    command = [sys.executable, "-I", "-S", "-c", program, root]
    result = subprocess.run(command, capture_output=True, check=True, text=True)
    assert {"msgspec", "zmq"} & set(result.stdout.split()) == set()


def test_a_trivial_run_is_cheap_and_the_executor_does_not_grow(rig: Rig, executor: Executor) -> None:
    trivial_runs(rig, executor, 100)
    before_ms, before_kib = cpu_ms(executor.pid), rig.free(executor).rss_kib
    trivial_runs(rig, executor, 300)
    assert (cpu_ms(executor.pid) - before_ms) / 300 < RUN_CPU_MS_MAX
    assert rig.free(executor).rss_kib - before_kib < 512
    assert rig.free(executor).rss_kib < 40_000


def trivial_runs(rig: Rig, executor: Executor, count: int) -> None:
    for _ in range(count):
        rig.begin(executor, "/bin/true")
        while not any(isinstance(packet, pair.Free) for packet in executor.packets):
            rig.scheduler.serve(1)
            executor.read()
        executor.packets.clear()


def cpu_ms(pid: int) -> float:
    """CPU time of all threads, in the kernel's nanosecond accounting."""
    threads = os.listdir(f"/proc/{pid}/task")
    return sum(int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0]) for thread in threads) / 1e6
