"""Limits of a run, and reloading: a bad file keeps the last good one, some keys need a restart."""

from pathlib import Path

import pytest

from cronward.protocol import config as configs
from cronward.protocol.config import RESTART_ONLY, CommandDefaults, Config
from cronward.protocol.job import Command
from cronward.protocol.rundir import Limits
from cronward.scheduler.settings import Settings, limits


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cronward.toml"


def load(file: Path, text: str, must_exist: bool = False) -> Settings:
    file.write_text(text)
    return Settings(file, {}, configs.load(file, {}), must_exist=must_exist)


def test_a_job_gets_the_configured_limits_where_it_names_none() -> None:
    command = CommandDefaults(timeout_s=1.5, no_output_timeout_s=2, output_max_bytes=10, grace_s=0.25)
    assert limits(Config(command=command), Command(["x"])) == Limits(1500, 2000, 60_000, 250, 20_000, 10)


def test_a_job_overrides_and_zero_means_none() -> None:
    payload = Command(["x"], timeout_seconds=0, no_output_timeout_seconds=0.5, output_max_bytes=99)
    found = limits(Config(), payload)
    assert (found.timeout_ms, found.no_output_ms, found.output_max_bytes) == (0, 500, 99)


def test_a_reload_installs_a_new_version(file: Path) -> None:
    settings = load(file, "[capacity]\nruns = 3\n")
    file.write_text("[capacity]\nruns = 5\n[executors]\nready = 4\n")
    assert settings.reload()
    assert (settings.snapshot.version, settings.config.capacity.runs, settings.error) == (2, 5, None)
    sent = settings.launcher_config()
    assert (sent.version, sent.ready) == (2, 4)


@pytest.mark.parametrize("bad", ["[capacity]\nruns = 0\n", "what = 1\n", "no toml", "[capacity]\nruns = 'x'\n"])
def test_a_bad_file_keeps_the_last_good_one(file: Path, bad: str) -> None:
    settings = load(file, "[capacity]\nruns = 3\n")
    file.write_text(bad)
    assert not settings.reload()
    assert (settings.snapshot.version, settings.config.capacity.runs) == (1, 3)
    assert settings.error is not None
    assert str(file) in settings.error
    file.write_text("[capacity]\nruns = 4\n")
    assert settings.reload()
    assert settings.error is None


def test_a_named_file_that_is_gone_keeps_the_last_good_one(file: Path) -> None:
    settings = load(file, "[capacity]\nruns = 3\n", must_exist=True)
    file.unlink()
    assert not settings.reload()
    assert settings.config.capacity.runs == 3


def test_a_default_file_that_is_gone_means_defaults(file: Path) -> None:
    settings = load(file, "[capacity]\nruns = 3\n")
    file.unlink()
    assert settings.reload()
    assert settings.config == Config()


def test_what_needs_a_restart_is_named_and_kept(file: Path) -> None:
    settings = load(file, "")
    before = settings.config
    file.write_text("store_key = 'other'\n[status]\ngroup = 'wheel'\n[capacity]\nruns = 5\n")
    assert settings.reload()
    assert settings.config.capacity.runs == 5
    assert settings.error is not None
    for key in RESTART_ONLY:
        assert configs.value(settings.config, key) == configs.value(before, key)
        assert key in settings.error
