"""How a schedule is refused: always with the field, the value, what is allowed and, where there is one, a hint."""

from cronward.protocol.conversion import SHOWN_MAX, shown
from cronward.protocol.errors import InvalidRequest


def refusal(field: str, problem: str, *, value: str, allowed: str, hint: str = "") -> InvalidRequest:
    """The error for `field` (`schedule.expr`, …). The parts are also in its details, for programs."""
    sentences = [f"{problem} (got {shown(value)}); allowed: {allowed}"]
    if hint:
        sentences.append(f"hint: {hint}")
    return InvalidRequest(field, "; ".join(sentences), value=value[:SHOWN_MAX], allowed=allowed, hint=hint or None)
