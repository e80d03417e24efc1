from hypothesis import given
from hypothesis import strategies as st

from cronward.executor.environment import MINIMAL, Environments

names = st.sampled_from(
    [b"HOME", b"LANG", b"CRONWARD_X", b"NOTIFY_SOCKET", b"WATCHDOG_USEC", b"LISTEN_FDS", b"OTHER", b"PATH", b"TZ"]
)


@given(st.dictionaries(names, st.binary(max_size=4)), st.sampled_from(["minimal", "inherit"]))
def test_nothing_of_ours_reaches_a_command(environ: dict[bytes, bytes], policy: str) -> None:
    env = Environments(environ).build("run", policy, "/bin", {"MINE": "1"})
    allowed = MINIMAL | {b"MINE", b"CRONWARD_RUN_ID"} | ({b"OTHER"} if policy == "inherit" else set())
    assert set(env) <= allowed
    assert env[b"MINE"] == b"1"


def test_path_is_the_configured_one_unless_it_is_inherited_or_the_jobs_own() -> None:
    environments = Environments({b"PATH": b"/launcher"})
    assert environments.build("r", "minimal", "/configured", {})[b"PATH"] == b"/configured"
    assert environments.build("r", "inherit", "/configured", {})[b"PATH"] == b"/launcher"
    assert environments.build("r", "minimal", "/configured", {"PATH": "/job"})[b"PATH"] == b"/job"
    assert Environments({}).build("r", "inherit", "/configured", {})[b"PATH"] == b"/configured"


def test_builds_do_not_share_anything() -> None:
    environments = Environments({})
    environments.build("first", "inherit", "/bin", {"A": "1"})
    assert b"A" not in environments.build("second", "inherit", "/bin", {})
