"""The calendar that croniter computes, against a reading of the day rules day by day."""

import calendar
import datetime as dt
import os
import random

from cronward.schedule import grammar
from cronward.schedule.days import days_of

CASES = 600
YEARS = 9
EPOCH = dt.date(1970, 1, 1)


def nearest_weekday(date: dt.date, day: int) -> int:
    """The weekday nearest to `day`, or to the last day of a shorter month, within the month of `date`."""
    length = calendar.monthrange(date.year, date.month)[1]
    day = min(day, length)
    weekday = date.replace(day=day).weekday()
    if weekday == calendar.SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == calendar.SUNDAY:
        return day + 1 if day < length else day - 2
    return day


def matches(rule: grammar.DayRule, date: dt.date) -> bool:
    length = calendar.monthrange(date.year, date.month)[1]
    weekday = date.isoweekday() % 7
    if date.month not in rule.months or (rule.years is not None and date.year not in rule.years):
        return False
    by_day = (
        date.day in rule.days
        or (rule.last and date.day == length)
        or any(nearest_weekday(date, day) == date.day for day in rule.nearest)
    )
    by_weekday = weekday in rule.weekdays or any(
        weekday == nth_weekday and ((date.day - 1) // 7 + 1 == n or (n == 0 and date.day + 7 > length))
        for nth_weekday, n in rule.nth
    )
    return (by_day and by_weekday) if rule.both else (by_day or by_weekday)


def day_fields(chance: random.Random) -> str:
    def items(*forms: str) -> str:
        return ",".join(chance.sample(forms, chance.choice((1, 1, 2, 3))))

    def number(low: int, high: int) -> int:
        return chance.randint(low, high)

    days = items(
        "*",
        f"*/{number(1, 31)}",
        "?",
        str(number(1, 31)),
        f"{number(1, 31)}-{number(1, 31)}",
        "L",
        "LW",
        f"{number(1, 31)}W",
    )
    weekdays = items(
        "*",
        f"*/{number(1, 7)}",
        "?",
        f"{number(0, 7)}",
        f"{number(0, 7)}-{number(0, 7)}",
        f"{number(0, 7)}#{number(1, 5)}",
        f"{number(0, 7)}L",
    )
    months = chance.choice(("*", "*", str(number(1, 12)), f"{number(1, 12)}-{number(1, 12)}/{number(1, 12)}"))
    years = chance.choice(("*", "*", "*", "2020-2030", "2028", "2096-2099"))
    return f"0 0 0 {days} {months} {weekdays} {years}"


def test_the_next_day_is_the_first_that_matches() -> None:
    seed = int(os.environ.get("CRONWARD_TEST_SEED", random.randrange(2**32)))
    print(f"CRONWARD_TEST_SEED={seed}")
    chance = random.Random(seed)
    for _ in range(CASES):
        expr = day_fields(chance)
        rule = grammar.parse(expr, "job-1").day_rule
        start = EPOCH + dt.timedelta(days=chance.randint(10_000, 46_000))
        dates = (start + dt.timedelta(days=days) for days in range(365 * YEARS))
        expected = next((date for date in dates if matches(rule, date)), None)
        found = days_of(rule).next_day((start - EPOCH).days)
        if expected is not None:
            assert found == (expected - EPOCH).days, f"{expr} from {start}"
        else:
            assert found is None or found >= (start - EPOCH).days + 365 * YEARS, f"{expr} from {start}"


def test_the_last_day_beside_all_days_but_one_is_no_star() -> None:
    days = days_of(grammar.parse("0 0 L,2-31 * *", "job-1").day_rule)
    last = dt.date(2027, 2, 28)
    following = days.next_day((last - EPOCH).days + 1)
    assert following is not None
    assert EPOCH + dt.timedelta(days=following) == dt.date(2027, 3, 2)


def test_that_nothing_comes_any_more_is_learnt_for_later_days_only() -> None:
    days = days_of(grammar.parse("0 0 0 1 1 * 2030", "job-1").day_rule)
    in_2030 = (dt.date(2030, 1, 1) - EPOCH).days
    assert days.next_day(in_2030 + 1) is None
    assert days.next_day(in_2030 + 2) is None
    assert days.next_day(in_2030) == in_2030
    assert days.next_day(0) == in_2030
