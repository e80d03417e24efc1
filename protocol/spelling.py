"""Spellings that mean the same, made one before anything is judged or compared. Unknown ones are left to the judges."""

DIGITS_MAX = 20
"""More than any limit has."""
_TRUTH = {"true": True, "false": False}


def spelled(raw: dict[str, object]) -> dict[str, object]:
    """A definition or a patch with its texts for `enabled` ("true", "false") and `staggerMs` (digits) as what they
    mean, as OpenClaw's cron takes them."""
    fields = dict(raw)
    enabled, schedule = fields.get("enabled"), fields.get("schedule")
    if isinstance(enabled, str):
        fields["enabled"] = _TRUTH.get(enabled, enabled)
    if isinstance(schedule, dict) and isinstance(stagger := schedule.get("staggerMs"), str):
        is_number = stagger.isascii() and stagger.isdigit() and len(stagger) <= DIGITS_MAX
        fields["schedule"] = schedule | {"staggerMs": int(stagger) if is_number else stagger}
    return fields


def same_expression(one: object, other: object) -> bool:
    """Whether two expressions differ in nothing but case and spaces."""
    return _bare(one) == _bare(other)


def _bare(expr: object) -> object:
    return " ".join(expr.upper().split()) if isinstance(expr, str) else expr
