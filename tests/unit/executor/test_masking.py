import base64
from urllib.parse import quote, quote_plus

from hypothesis import given
from hypothesis import strategies as st

from cronward.executor.masking import MASK, Masker

secret_values = st.binary(min_size=4, max_size=12)
# Few letters, so that beginnings of secrets, repetitions and overlaps are common.
narrow = st.text(alphabet="ab*", max_size=8).map(str.encode)


def masked(values: list[bytes], *chunks: bytes) -> bytes:
    masker = Masker(values)
    return b"".join(masker.feed(chunk) for chunk in chunks) + masker.flush()


@given(st.lists(st.text(alphabet="ab", min_size=4, max_size=7).map(str.encode), max_size=3), st.lists(narrow))
def test_chunks_make_no_difference(values: list[bytes], chunks: list[bytes]) -> None:
    assert masked(values, *chunks) == masked(values, b"".join(chunks))


@given(secret_values, st.binary(max_size=20), st.binary(max_size=20), st.data())
def test_a_secret_never_gets_through(value: bytes, before: bytes, after: bytes, data: st.DataObject) -> None:
    text = before + value + after
    cut = data.draw(st.integers(0, len(text)))
    shown = masked([value], text[:cut], text[cut:])
    # Only what the mask itself makes (a secret such as `****`) can look like it.
    assert value not in shown or set(value) & set(MASK)


def test_url_encodings_are_masked() -> None:
    secret = "p@ss/w+rd=ä "
    forms = {quote(secret), quote(secret, safe=""), quote_plus(secret), quote(secret, safe="").lower()}
    for form in forms:
        assert masked([secret.encode()], f"token={form}&x".encode()) == b"token=***&x"


def test_base64_is_masked_at_each_alignment() -> None:
    secret = b"p@ss/w+rd=?>~~"
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert masked([secret], b"<" + encode(secret) + b">") == b"<***>"
        for before in (b"", b"x", b"xy"):
            for after in (b"", b"x", b"xy"):
                shown = masked([secret], encode(before + secret + after))
                assert MASK in shown
                # What is left depends on the neighbours, and holds less than one letter of the secret at each end.
                assert len(shown) <= len(MASK) + 8


def test_short_values_are_not_masked() -> None:
    assert masked([b"abc", b""], b"abc abcd") == b"abc abcd"


def test_the_longest_of_two_secrets_wins() -> None:
    assert masked([b"abcd", b"abcdefgh"], b"abcdefgh abcd") == b"*** ***"
    assert masked([b"abcd", b"abcdefgh"], b"abcde", b"fgh abcd") == b"*** ***"


def test_what_cannot_be_a_secret_is_shown_at_once() -> None:
    masker = Masker([b"secret"])
    assert masker.feed(b"hello se") == b"hello "
    assert masker.feed(b"ven ") == b"seven "
    assert masker.feed(b"secre") == b""
    assert masker.flush() == b"secre"


def test_without_secrets_nothing_is_touched() -> None:
    assert masked([], b"a", b"b") == b"ab"
