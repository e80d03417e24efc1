"""Replacing secrets in a stream of bytes, wherever the stream is cut into chunks.

Masked are the value itself, its URL encodings and its base64 encodings at each of the three alignments that it can
have inside a longer text. What a program makes of a secret otherwise (reversed, hashed, hex, one letter a line) is out
of reach; so are values shorter than MIN_BYTES, which would mask half of any text.
"""

import base64
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = b"***"
MIN_BYTES = 4

_TO_URLSAFE = bytes.maketrans(b"+/", b"-_")


class Masker:
    """Feed chunks, get masked bytes; the end that could be the beginning of a secret is held back until it is known."""

    def __init__(self, values: Iterable[bytes]) -> None:
        forms = {form for value in values if len(value) >= MIN_BYTES for form in encodings(value)}
        # The longest first: the first alternative that matches wins.
        self._forms = sorted(forms, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, self._forms))) if forms else None
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """What of the stream so far can be shown now."""
        if self._pattern is None:
            return chunk
        data = self._held + chunk
        out: list[bytes] = []
        shown = 0
        partial = self._partial_at(data, 0)
        for match in self._pattern.finditer(data):
            if match.start() >= partial:
                break
            out += (data[shown : match.start()], MASK)
            shown = match.end()
            if shown > partial:
                partial = self._partial_at(data, shown)
        out.append(data[shown:partial])
        self._held = data[partial:]
        return b"".join(out)

    def flush(self) -> bytes:
        """The rest, at the end of the stream."""
        rest, self._held = self._held, b""
        return self._pattern.sub(MASK, rest) if self._pattern is not None else rest

    def _partial_at(self, data: bytes, start: int) -> int:
        """The first position from `start` on whose rest is a proper beginning of a secret; len(data) if none is."""
        first = len(data)
        for form in self._forms:
            position = max(start, len(data) - len(form) + 1)
            while (position := data.find(form[:1], position, first)) >= 0:
                if form.startswith(data[position:]):
                    first = position
                    break
                position += 1
        return first


def encodings(value: bytes) -> set[bytes]:
    """The forms of `value` that are masked."""
    forms = {value}
    for quoted in (quote(value), quote(value, safe=""), quote_plus(value)):
        forms |= {quoted.encode(), re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), quoted).encode()}
    for encoded in (base64.b64encode(value), *(_base64_core(value, shift) for shift in range(3))):
        forms |= {encoded, encoded.translate(_TO_URLSAFE)}
    return {form for form in forms if len(form) >= MIN_BYTES}


def _base64_core(value: bytes, shift: int) -> bytes:
    """The letters that depend on `value` alone when it stands `shift` bytes behind a multiple of three."""
    encoded = base64.b64encode(b"\0" * shift + value)
    first = (shift * 8 + 5) // 6
    last = (shift + len(value)) * 8 // 6
    return encoded[first:last]
