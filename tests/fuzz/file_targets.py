"""What is read from disk: the files of a run directory, and the configuration."""

import os
import shutil
import tempfile
from pathlib import Path

import msgspec

from cronward.executor import intent_file
from cronward.executor.steps import SetupFailed
from cronward.launcher.judgement import Free, is_over, judge, read_intent
from cronward.launcher.live import LiveRun
from cronward.launcher.pidfds import open_pidfd
from cronward.protocol import config, job, outcome, rundir
from cronward.protocol.errors import ConfigError
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.ids import run_key
from cronward.protocol.rundir import Damaged, Intent, Limits
from cronward.scheduler import settings
from tests.fuzz.mutation import Mutator

RUN = "run"
PAYLOAD = job.Command(["/bin/true"], env={"A": "b"})
INTENT = Intent(
    RUN,
    "scheduled",
    job.encode(job.Definition("name", job.Every(60_000), PAYLOAD)),
    Limits(1, 2, 3, 4, 5, 6),
    ProcessIdentity(os.getpid(), 5, "a boot that is over"),
    77,
    "/bin",
)
OUTCOME = outcome.Outcome(
    RUN, outcome.Status.ERROR, outcome.Reason.SIGNAL, "m", 1, 2, 3, 4, 5, outcome.Stream(1, 1, "s", b"h", b"t", True)
)


class RunDirectory:
    """`intent`, `outcome` and `lock`, sealed or not: judged without an exception, by launcher and executor."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="cw-fuzz-")) / run_key(RUN)
        self._root.mkdir()
        self._files = {
            rundir.INTENT: msgspec.msgpack.decode(msgspec.msgpack.encode(INTENT)),
            rundir.OUTCOME: msgspec.msgpack.decode(outcome.encode(OUTCOME)),
        }

    def renew(self) -> None:
        for name in (rundir.INTENT, rundir.OUTCOME):
            (self._root / name).write_bytes(rundir.seal(msgspec.msgpack.encode(self._files[name])))
        (self._root / rundir.LOCK).write_bytes(rundir.TASK_MAY_RUN)

    def make(self, mutator: Mutator) -> bytes:
        """The first byte says which file the rest is."""
        name = mutator.chance.choice((rundir.INTENT, rundir.OUTCOME, rundir.LOCK))
        if name == rundir.LOCK:
            return b"l" + mutator.data(rundir.TASK_OVER)
        body = msgspec.msgpack.encode(mutator.value(self._files[name]))
        if mutator.chance.random() < 0.3:
            body = mutator.data(body)
        sealed = rundir.seal(body)
        return name[0].encode() + (mutator.data(sealed) if mutator.chance.random() < 0.3 else sealed)

    def feed(self, data: bytes) -> None:
        name = {"i": rundir.INTENT, "o": rundir.OUTCOME, "l": rundir.LOCK}[chr(data[0])]
        (self._root / name).write_bytes(data[1:])
        directory = str(self._root)
        verdict = judge(directory, RUN)
        assert isinstance(verdict, Free)
        assert verdict.lock_fd is not None
        os.close(verdict.lock_fd)
        assert (verdict.outcome is None) == (verdict.problem != "")
        is_over(directory)
        self._read_intent(directory)

    def _read_intent(self, directory: str) -> None:
        try:
            pidfd = open_pidfd(LiveRun.of(read_intent(directory), directory).executor)
        except Damaged:
            return
        assert pidfd is None, "a process of another boot is found"
        try:
            intent_file.read(directory, RUN)
        except SetupFailed:
            return

    def close(self) -> None:
        shutil.rmtree(self._root.parent)


TOML = """
store_key = "main"
default_tz = "Europe/Berlin"
log_level = "debug"
[capacity]
runs = 3
[command]
remote = true
timeout_s = 1e3
grace_s = 0.5
[executors]
ready = 2
max = 0x10
[retention]
days = 1_0
[gateway]
kind = "http"
url = '''http://127.0.0.1:1'''
interval_s = 5.0 # comment
[retry]
delays_s = [1, 2.5, 3]
transient = ["network", "timeout"]
jitter = 0.2
[catch_up]
policy = "all"
"""
WORDS = (
    *("nan", "-inf", "inf", "1e999", "9" * 5000, "-9223372036854775809", "1979-05-27T07:32:00Z", "07:32:00"),
    *("[" * 2000, "{" * 2000, '"\\u0000"', '"\\ud800"', "'''", '"""', "[[a]]", "[a.b]", "a.b.c = 1", "\x00", "\ufeff"),
    *("true", "[]", "{}", '""', "[command]\n[command]", "=", "\r", "0o9", "a" * 3000),
)


class Configuration:
    """The TOML loader: a configuration or a ConfigError, and one that is taken can be used."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="cw-fuzz-"))
        self._path = self._root / "cronward.toml"

    def renew(self) -> None:
        """Nothing grows."""

    def make(self, mutator: Mutator) -> bytes:
        lines = TOML.splitlines()
        for _ in range(mutator.chance.randint(1, 3)):
            at = mutator.chance.randrange(len(lines))
            key, equals, value = lines[at].partition("=")
            match mutator.chance.randrange(4):
                case 0:
                    lines[at] = f"{key}{equals or '='} {mutator.chance.choice(WORDS)}"
                case 1:
                    lines[at] = f"{key}{equals}{mutator.text(value, 'ae019.-_[]{}=,')}"
                case 2:
                    lines.insert(at, mutator.chance.choice((*WORDS, *lines)))
                case _:
                    lines[at] = mutator.chance.choice(lines)
        data = "\n".join(lines).encode()
        return mutator.data(data) if mutator.chance.random() < 0.2 else data

    def feed(self, data: bytes) -> None:
        self._path.write_bytes(data)
        try:
            loaded = config.load(self._path, {})
        except ConfigError:
            return
        settings.Settings(self._path, {}, loaded).launcher_config()
        settings.limits(loaded, PAYLOAD)

    def close(self) -> None:
        shutil.rmtree(self._root)
