"""Random expressions from the grammar that all crons share, and zones with the changes that they make."""

import datetime as dt
import itertools
import random

from cronward.schedule.spans import Span, spans

ZONES = {
    # zone: years whose changes are worth meeting
    "UTC": (2026,),
    "America/New_York": (2026,),
    "America/Nuuk": (2026,),
    "America/Havana": (2026,),
    "America/Sao_Paulo": (2017, 2018),
    "America/St_Johns": (2006, 2026),
    "Africa/Cairo": (2026,),
    "Africa/Casablanca": (2026,),
    "Antarctica/Troll": (2026,),
    "Asia/Beirut": (2026,),
    "Asia/Kathmandu": (2026,),
    "Asia/Pyongyang": (2015, 2018),
    "Australia/Lord_Howe": (2026,),
    "Europe/Berlin": (2026,),
    "Europe/Dublin": (2026,),
    "Europe/Istanbul": (2015, 2016),
    "Pacific/Apia": (2011,),
}


def year_start_s(year: int) -> int:
    return int(dt.datetime(year, 1, 1, tzinfo=dt.UTC).timestamp())


def changes(tz: str, from_s: int, until_s: int) -> list[tuple[Span, Span]]:
    """The clock changes of a zone between two instants, each as the spans before and after it."""
    line = itertools.takewhile(lambda span: span.start_s < until_s, spans(tz, from_s))
    return [(earlier, later) for earlier, later in itertools.pairwise(line) if earlier.offset_s != later.offset_s]


def field(chance: random.Random, low: int, high: int, step_max: int) -> str:
    first, last = sorted((chance.randint(low, high), chance.randint(low, high)))
    if first == last:
        last = min(high, last + 1)
        first = last - 1
    forms = (
        "*",
        f"*/{chance.randint(1, step_max)}",
        str(first),
        f"{first},{last}",
        f"{first}-{last}",
        f"{first}-{last}/{chance.randint(1, step_max)}",
        f"{first},{chance.randint(low, high)}-{high}",
    )
    return chance.choice(forms)


def expression(chance: random.Random) -> str:
    """Five fields; the rarer ones are starred more often, so that slots meet the changes."""
    minute, hour = field(chance, 0, 59, 59), field(chance, 0, 23, 23)
    day = field(chance, 1, 28, 30) if chance.random() < 0.4 else "*"
    month = field(chance, 1, 12, 11) if chance.random() < 0.2 else "*"
    weekday = field(chance, 0, 6, 6) if chance.random() < 0.4 else "*"
    return f"{minute} {hour} {day} {month} {weekday}"


def instant_s(chance: random.Random, tz: str) -> int:
    """Mostly near one of the zone's changes."""
    year = chance.choice(ZONES[tz])
    met = changes(tz, year_start_s(year), year_start_s(year + 1))
    if met and chance.random() < 0.8:
        return chance.choice(met)[1].start_s + chance.randint(-90_000, 7_200)
    return chance.randint(year_start_s(year), year_start_s(year + 1))
