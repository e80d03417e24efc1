"""`make bench-cli`: what a command costs beside what Python with click alone costs, as the least CPU of many runs."""

import resource
import subprocess
import sys
from collections.abc import Mapping

from tests.bench.figures import finish, say
from tests.support.instance import Instance

RUNS = 15
JOBS = 20
MAIN = "from cronward.cli.main import main; import sys; sys.exit(main(sys.argv[1:]))"


def main() -> None:
    with Instance() as instance:
        instance.start()
        for number in range(JOBS):
            instance.add_command_job(["/bin/true"], fields={"name": f"job {number}"})
        environ = instance.environ | {"PYTHONPYCACHEPREFIX": str(instance.root / "cache")}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        click_ms = cpu_ms("import click", [], environ)
        help_ms = cpu_ms(MAIN, ["--help"], environ)
        list_ms = cpu_ms(MAIN, ["list"], environ)
        status_ms = cpu_ms(MAIN, ["status"], environ)
    say(f"--help {help_ms:.0f} ms, list {list_ms:.0f} ms, status {status_ms:.0f} ms; click alone {click_ms:.0f} ms")
    finish({"help_ms": help_ms, "list_ms": list_ms, "status_ms": status_ms, "click_ms": click_ms})


def cpu_ms(code: str, arguments: list[str], environ: Mapping[str, str]) -> float:
    """The least CPU time of a Python program, with everything compiled: the first run, which compiles, is not taken."""
    taken = []
    for _ in range(RUNS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code, *arguments], env=environ, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken[1:]) * 1000


if __name__ == "__main__":
    main()
