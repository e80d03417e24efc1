from hypothesis import given
from hypothesis import strategies as st

from cronward.executor.output import excerpt
from cronward.protocol.outcome import EXCERPT_HEAD_BYTES, EXCERPT_TAIL_BYTES

WHOLE = EXCERPT_HEAD_BYTES + EXCERPT_TAIL_BYTES


def of(data: bytes) -> tuple[bytes, bytes]:
    return excerpt(data[:WHOLE], data[-EXCERPT_TAIL_BYTES:], len(data))


def test_what_fits_is_all_head() -> None:
    assert of(b"x" * WHOLE) == (b"x" * WHOLE, b"")
    assert of(b"x" * (WHOLE + 1)) == (b"x" * EXCERPT_HEAD_BYTES, b"x" * EXCERPT_TAIL_BYTES)


@given(st.text(alphabet="aé€😀", min_size=1, max_size=20), st.integers(0, 3))
def test_letters_are_whole_at_both_cuts(pattern: str, shift: int) -> None:
    data = b"x" * shift + (pattern * (WHOLE + 1)).encode()
    head, tail = of(data)
    head.decode()
    tail.decode()
    assert data.startswith(head)
    assert data.endswith(tail)
    assert len(head) > EXCERPT_HEAD_BYTES - 4
    assert len(tail) > EXCERPT_TAIL_BYTES - 4


def test_bytes_that_are_no_text_are_not_eaten() -> None:
    data = b"\x80" * (WHOLE + 10)
    head, tail = of(data)
    assert len(head) == EXCERPT_HEAD_BYTES
    assert len(tail) >= EXCERPT_TAIL_BYTES - 4
