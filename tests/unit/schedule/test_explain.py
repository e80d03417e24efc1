"""Schedules in words."""

import random

import pytest

from cronward.protocol.job import At, Cron, Every
from cronward.schedule.explain import explain
from tests.unit.schedule.expressions import expression


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5th minute"),
        ("0 * * * *", "at the start of every hour"),
        ("15 * * * *", "minute 15 of every hour"),
        ("30 2 * * *", "at 02:30"),
        ("0 9,17 * * mon-fri", "at 09:00 and 17:00 on Mon to Fri"),
        ("*/15 9-17 * * 1-5", "every 15th minute of hours 9 to 17 on Mon to Fri"),
        ("0 9 13 * 5", "at 09:00 on the 13th, and on Fri"),
        ("0 9 */10 * 1", "at 09:00 on the 1st, 11th, 21st and 31st if it is Mon"),
        ("0 0 1-31 * 1", "at 00:00 on every day"),
        ("0 0 LW 1-3 *", "at 00:00 on the last weekday (Mon-Fri) of the month in Jan to Mar"),
        ("0 0 L,15W * *", "at 00:00 on the weekday (Mon-Fri) nearest to the 15th and the last day of the month"),
        ("0 0 * * 1#2,5L", "at 00:00 on the 2nd Mon of the month and the last Fri of the month"),
        ("*/10 * * * * *", "every 10th second"),
        ("15 * 3 * * *", "second 15 of every minute of hour 3"),
        ("30 0 12 1 1 * 2030", "at 12:00:30 on the 1st in Jan in 2030"),
        ("@weekly", "at 00:00 on Sun"),
    ],
)
def test_expressions(expr: str, words: str) -> None:
    assert explain(Cron(expr, "Europe/Berlin"), "job-1") == f"{words}, Europe/Berlin time"


def test_other_schedules() -> None:
    assert explain(At("2030-01-01T00:00:00.000Z"), "j") == "once, at 2030-01-01T00:00:00.000Z"
    assert explain(Every(5_400_000, 0), "j") == "every 1h30m, counted from a fixed instant"


def test_every_expression_has_words() -> None:
    chance = random.Random(4)
    for _ in range(2_000):
        expr = expression(chance)
        words = explain(Cron(expr), "j")
        assert words, expr
        assert "  " not in words, expr


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        ("0 9 * * FRI-MON", "at 09:00 on Fri to Mon"),
        ("0 9 * * 5-7", "at 09:00 on Fri to Sun"),
        ("0 9 * * 6-7", "at 09:00 on Sat and Sun"),
        ("0 9 1 11-2 *", "at 09:00 on the 1st in Nov to Feb"),
        ("0 9 * * 1,3", "at 09:00 on Mon and Wed"),
        ("0 9 15W * *", "at 09:00 on the weekday (Mon-Fri) nearest to the 15th"),
    ],
)
def test_ranges_around_the_end_of_week_and_year(expr: str, words: str) -> None:
    assert explain(Cron(expr), "job-1") == words


def test_what_depends_on_the_job_says_so() -> None:
    assert explain(Cron("H 9 * * *", "UTC"), "job-1").endswith("UTC time (H is a place of the job's own)")
