"""The configuration loader: where values come from, and that each error names file or variable, key and value."""

from pathlib import Path

import msgspec
import pytest

from cronward.protocol import config
from cronward.protocol.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cronward.toml"


def test_without_file_and_environment_the_defaults_hold(file: Path) -> None:
    assert config.load(file, {}) == config.Config()


def test_environment_wins_over_file_over_default(file: Path) -> None:
    file.write_text('store_key = "mine"\n[capacity]\nruns = 3\n[executors]\nready = 4\n')
    loaded = config.load(file, {"CRONWARD_CAPACITY_RUNS": "5"})
    assert (loaded.store_key, loaded.capacity.runs, loaded.executors.ready) == ("mine", 5, 4)
    assert loaded.executors.max == config.Executors().max


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[capacity]\nruns = 0\n", ("capacity.runs", "0", "cronward.toml")),
        ('[capacity]\nruns = "8"\n', ("capacity.runs", "8")),
        ("[capacity]\nrun = 8\n", ("capacity", "run")),
        ("[capicity]\nruns = 8\n", ("capicity",)),
        ("[capacity\n", ("not TOML", "line 1")),
        ('store_key = "a b"\n', ("store_key", "a b")),
        ('log_level = "loud"\n', ("log_level", "loud", "warning")),
        ("capacity = 8\n", ("capacity",)),
        ('[gateway]\nkind = "carrier-pigeon"\n', ("gateway.kind", "carrier-pigeon", "http")),
        ("[executors]\nready = 9\nmax = 8\n", ("executors.ready", "9", "8")),
        ('[command]\nremote = "yes"\n', ("command.remote", "yes")),
        ("[retention]\ndays = nan\n", ("retention.days",)),
    ],
)
def test_an_error_in_the_file_names_key_and_value(file: Path, text: str, said: tuple[str, ...]) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        config.load(file, {})
    for word in (str(file), *said):
        assert word in raised.value.message


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CRONWARD_CAPACITY_RUNS", "many", "number"),
        ("CRONWARD_CAPACITY_RUNS", "0", "CRONWARD_CAPACITY_RUNS"),
        ("CRONWARD_CAPACITY_RUNS", "", "number"),
        ("CRONWARD_COMMAND_REMOTE", "yes", "true or false"),
        ("CRONWARD_LOG_LEVEL", "loud", "loud"),
        ("CRONWARD_CAPACITY", "8", "CRONWARD_CAPACITY"),
        ("CRONWARD_CAPACITY_RUN", "8", "CRONWARD_CAPACITY_RUN"),
    ],
)
def test_an_error_in_the_environment_names_the_variable(file: Path, name: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config.load(file, {name: value})
    assert name in raised.value.message
    assert said in raised.value.message


@pytest.mark.parametrize("zone", ["PST", "Mars/Olympus", "", "localtime", "../etc/passwd"])
def test_a_zone_that_does_not_exist_is_refused_at_once(file: Path, zone: str) -> None:
    """B059: at the start, or a reload that keeps what is in force, and not by each job that says no zone."""
    file.write_text(f"default_tz = '{zone}'")
    with pytest.raises(ConfigError, match=f"{file}: default_tz: .*is no known time zone; allowed"):
        config.load(file, {})


def test_a_file_that_was_named_must_exist(file: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        config.load(file, {}, must_exist=True)


def test_an_unreadable_file_is_an_error_even_if_it_may_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path, {})
    (tmp_path / "latin1.toml").write_bytes(b'store_key = "\xe4"\n')
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path / "latin1.toml", {})


def test_every_key_has_its_own_variable_and_can_be_set_by_it(file: Path) -> None:
    keys = list(config.keys())
    assert len({config.variable(key) for key in keys}) == len(keys)
    defaults = msgspec.to_builtins(config.Config())
    for key in keys:
        value = defaults
        for part in key.split("."):
            value = value[part]
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(1 if value is None else value)
        loaded = config.load(file, {config.variable(key): text})
        assert config.value(loaded, key) == (1 if value is None else config.value(config.Config(), key)), key


def test_lists_in_the_environment(file: Path) -> None:
    environ = {"CRONWARD_RETRY_BACKOFF_S": "1, 2.5", "CRONWARD_RETRY_TRANSIENT": "network,timeout"}
    loaded = config.load(file, environ).retry
    assert list(loaded.backoff_s) == [1, 2.5]
    assert list(loaded.transient) == ["network", "timeout"]
    with pytest.raises(ConfigError, match="CRONWARD_RETRY_TRANSIENT"):
        config.load(file, {"CRONWARD_RETRY_TRANSIENT": "bad luck"})


def test_keys_that_need_a_restart_are_told() -> None:
    changed = config.Config(store_key="other", default_tz="Europe/Berlin", status=config.StatusConfig("staff"))
    assert config.changed_restart_only(config.Config(), changed) == ["store_key", "status.group"]


def test_the_file_is_found_by_flag_environment_and_default() -> None:
    assert config.config_path({"CRONWARD_CONFIG": "/a"}, "/b") == Path("/b")
    assert config.config_path({"CRONWARD_CONFIG": "/a"}) == Path("/a")
    assert config.config_path({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}).name == "cronward.toml"
