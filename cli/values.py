"""Kinds of values that options take."""

import math

import click

from cronward.schedule.duration import parse_duration_ms


class Duration(click.ParamType[int]):
    """A duration option, in ms. A bare number is ms, as in OpenClaw's cron."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        ms = parse_duration_ms(str(value))
        if ms is None:
            self.fail(f"{value!r} is no duration; use e.g. 30s, 10m, 1h30m (a bare number is milliseconds)", param, ctx)
        return ms


class Seconds(click.FloatRange):
    """A number of seconds that is one."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if math.isnan(seconds):
            self.fail(f"{value!r} is no number of seconds.", param, ctx)
        return seconds


class Delays(click.ParamType[list[float]]):
    """Durations with commas between them, in seconds."""

    name = "durations"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[float]:
        delays_ms = [parse_duration_ms(part) for part in str(value).split(",")]
        if not all(delays_ms):
            self.fail(f"{value!r} is no list of durations; use e.g. 2s,4s,8s", param, ctx)
        return [(delay_ms or 0) / 1000 for delay_ms in delays_ms]


class Names(click.ParamType[list[str]]):
    """Some of a few names, with commas between them."""

    name = "names"

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        names = [part.strip() for part in str(value).split(",")]
        for name in names:
            if name not in self._allowed:
                self.fail(f"{name!r} is not one of {', '.join(self._allowed)}", param, ctx)
        return names
