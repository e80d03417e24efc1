"""Sealed files: damage of any kind is noticed, never taken for contents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol import rundir
from tests.unit.protocol import samples


@given(st.binary(max_size=300))
def test_what_was_sealed_is_unsealed(body: bytes) -> None:
    assert rundir.unseal(rundir.seal(body), "outcome") == body


@given(st.binary(max_size=100), st.data())
def test_a_cut_file_is_damaged(body: bytes, data: st.DataObject) -> None:
    sealed = rundir.seal(body)
    length = data.draw(st.integers(0, len(sealed) - 1))
    with pytest.raises(rundir.Damaged, match="outcome"):
        rundir.unseal(sealed[:length], "outcome")


@given(st.binary(max_size=100), st.data())
def test_one_wrong_bit_is_damage(body: bytes, data: st.DataObject) -> None:
    sealed = bytearray(rundir.seal(body))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises(rundir.Damaged):
        rundir.unseal(bytes(sealed), "outcome")


@given(st.binary(min_size=1, max_size=50))
def test_an_appended_tail_is_damage(tail: bytes) -> None:
    with pytest.raises(rundir.Damaged):
        rundir.unseal(rundir.seal(b"body") + tail, "outcome")


@given(st.binary(max_size=100))
def test_a_sealed_file_of_something_else_is_no_intent(body: bytes) -> None:
    with pytest.raises(rundir.Damaged, match="intent"):
        rundir.decode_intent(rundir.seal(body))


def test_zeros_as_a_power_loss_leaves_them_are_damage() -> None:
    sealed = rundir.encode_intent(samples.INTENT)
    for hole in range(0, len(sealed) - 16):
        holed = sealed[:hole] + bytes(16) + sealed[hole + 16 :]
        with pytest.raises(rundir.Damaged):
            rundir.decode_intent(holed)
