"""Making bad messages out of good ones: values that do not belong there, and bytes that were damaged on the way."""

import random
from collections.abc import Callable

import msgspec

Value = object

ODD: tuple[Value, ...] = (
    *(0, 1, -1, 255, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)),
    *(0.5, -0.0, 1e308, float("inf"), float("nan")),
    *("", "\0", "a", " ", "é\u2028😀", "x" * 300, "x" * 70_000, "../../../etc/passwd", "\n{}", "1e999"),
    *(b"", b"\0", b"\xff" * 10),
    *(None, True, False),
    *([], {}, [[]], [None] * 500, {"": {}}, {"kind": "command"}),
)
"""Values that decoders and handlers like least."""


class Mutator:
    """Everything random comes from `chance`: the same seed makes the same inputs."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def value(self, value: Value) -> Value:
        """`value` with one to three of its parts changed; shapes are kept more often than not."""
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            value = self._changed(value)
        return value

    def data(self, data: bytes) -> bytes:
        """`data` with one to four kinds of damage."""
        for _ in range(self.chance.choice((1, 1, 2, 4))):
            data = self.chance.choice(_DAMAGES)(self.chance, data)
        return data

    def message(self, data: bytes) -> bytes:
        """The msgpack message `data`: mostly with other contents, sometimes damaged, seldom as it is."""
        if self.chance.random() < 0.8:
            data = msgspec.msgpack.encode(self.value(msgspec.msgpack.decode(data)))
        return self.data(data) if self.chance.random() < 0.3 else data

    def text(self, text: str, alphabet: str) -> str:
        """`text` with letters of `alphabet` put in, taken out, exchanged or repeated."""
        for _ in range(self.chance.choice((1, 2, 3, 6))):
            at = self.chance.randint(0, len(text))
            match self.chance.randrange(5):
                case 0:
                    text = text[:at] + self.chance.choice(alphabet) + text[at:]
                case 1:
                    text = text[:at] + text[at + 1 :]
                case 2:
                    text = text[:at] + self.chance.choice(alphabet) + text[at + 1 :]
                case 3:
                    text = text[:at] + text[at:] * self.chance.choice((2, 3, 40))
                case _:
                    text = text[:at] + "".join(self.chance.choices(alphabet, k=self.chance.randint(1, 40))) + text[at:]
        return text[:20_000]

    def _changed(self, value: Value) -> Value:
        if self.chance.random() < 0.15:
            return self.chance.choice(ODD)
        if isinstance(value, list) and value:
            return self._changed_list(value)
        if isinstance(value, dict) and value:
            return self._changed_dict(value)
        if isinstance(value, bytes):
            return self.data(value)
        if isinstance(value, str) and self.chance.random() < 0.5:
            return self.text(value, "abc 0-9:;/\0\n\"'é😀")
        return self.chance.choice(ODD)

    def _changed_list(self, value: list[Value]) -> Value:
        at = self.chance.randrange(len(value))
        match self.chance.randrange(12):
            case 0:
                return value[:at]
            case 1:
                return [*value, self.chance.choice(ODD)]
            case 2:
                return [*value[:at], self.chance.choice(value), *value[at:]]
            case 3:
                return self._nested(value)
            case _:
                return [*value[:at], self._changed(value[at]), *value[at + 1 :]]

    def _changed_dict(self, value: dict[Value, Value]) -> Value:
        key = self.chance.choice(list(value))
        match self.chance.randrange(10):
            case 0:
                return {name: part for name, part in value.items() if name != key}
            case 1:
                return value | {self.chance.choice(("", "x", "id", "kind", "x" * 3000)): self.chance.choice(ODD)}
            case 2:
                return value | {self.chance.choice(list(value)): value[key]}
            case _:
                return value | {key: self._changed(value[key])}

    def _nested(self, value: Value) -> Value:
        for _ in range(self.chance.choice((2, 50, 300))):
            value = [value]
        return value


def _place(chance: random.Random, data: bytes) -> int:
    return chance.randint(0, len(data))


def _cut(chance: random.Random, data: bytes) -> bytes:
    return data[: _place(chance, data)]


def _flip(chance: random.Random, data: bytes) -> bytes:
    if not data:
        return b"\x00"
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _exchange(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + chance.randbytes(chance.randint(1, 8)) + data[at + 8 :]


def _insert(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return data[:at] + chance.choice((b"\0", b"\xc1", b"\xdd\xff\xff\xff\xff", b"\xdb\x7f", b"[" * 3000)) + data[at:]


def _repeat(chance: random.Random, data: bytes) -> bytes:
    at = _place(chance, data)
    return (data[:at] + data[at:] * chance.choice((2, 3, 100)))[:200_000]


_DAMAGES: tuple[Callable[[random.Random, bytes], bytes], ...] = (_cut, _flip, _flip, _exchange, _insert, _repeat)
