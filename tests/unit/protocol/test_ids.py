"""Names: reversible where they must be, opaque and short elsewhere."""

import string

from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol import ids

KEYS = st.text(alphabet=string.ascii_letters + string.digits + "_-", min_size=1, max_size=32)
SLOTS = st.integers(min_value=-(2**53), max_value=2**53)


@given(KEYS, st.text(max_size=100), SLOTS)
def test_a_slot_id_gives_back_what_it_was_made_of(store_key: str, job_id: str, slot_ms: int) -> None:
    run_id = ids.slot_run_id(store_key, job_id, slot_ms)
    assert ids.parse_slot_run_id(run_id) == (store_key, job_id, slot_ms)
    assert set(run_id) <= set(string.ascii_letters + string.digits + "-_.")


@given(st.tuples(KEYS, st.text(max_size=20), SLOTS), st.tuples(KEYS, st.text(max_size=20), SLOTS))
def test_two_slots_never_share_an_id(one: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    assert (ids.slot_run_id(*one) == ids.slot_run_id(*other)) == (one == other)


@given(st.text(max_size=80))
def test_anything_else_is_no_slot_id(text: str) -> None:
    parsed = ids.parse_slot_run_id(ids.SLOT_PREFIX + text)
    assert parsed is None or isinstance(parsed[2], int)
    assert ids.parse_slot_run_id(ids.MANUAL_PREFIX + text) is None


def test_golden_ids() -> None:
    run_id = ids.slot_run_id("main", "job", 1_700_000_000_000)
    assert run_id == "cron-slot-v1.WyJtYWluIiwiam9iIiwxNzAwMDAwMDAwMDAwXQ"
    assert ids.run_key(run_id) == "6142bce038093777417c429d341cc10e"
    assert ids.manual_run_id("job", 5, "0123456789abcdef", 2) == "manual:job:5:01234567-2"


def test_the_longest_slot_id_fits() -> None:
    longest = ids.slot_run_id("k" * 32, ids.new_job_id(), 8_640_000_000_000_000)
    assert len(longest) <= ids.RUN_ID_MAX


def test_a_run_secret_belongs_to_key_and_run() -> None:
    secret = ids.run_secret(b"key", "run")
    assert secret == ids.run_secret(b"key", "run")
    assert len({secret, ids.run_secret(b"key", "other"), ids.run_secret(b"other", "run")}) == 3
