"""What a check found, and how it is told."""

import enum

import msgspec

from cronward.cli.text import paint, safe


class Level(enum.StrEnum):
    """`fail`: the service cannot do its work. `warn`: it can, but somebody should know. `ok`."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one check. `advice` says what to do where it is not ok."""

    check: str
    level: Level
    text: str
    advice: str = ""


_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


def findings_text(findings: list[Finding]) -> str:
    """One line a finding, and below it the advice."""
    width = max(len(finding.check) for finding in findings)
    lines = []
    for finding in findings:
        level = paint(f"{finding.level:<4}", _COLOURS[finding.level])
        lines.append(f"{level}  {finding.check:<{width}}  {safe(finding.text)}")
        if finding.advice:
            lines.append(f"      {'':<{width}}  → {safe(finding.advice)}")
    return "\n".join(lines)
