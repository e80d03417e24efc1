"""Missed slots: which of them are run, in what order, and when."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronward.protocol.config import CatchUpConfig
from cronward.protocol.job import At, CatchUp, Cron, Every, Schedule
from cronward.schedule import catch_up
from cronward.schedule.at import iso_utc
from cronward.schedule.catch_up import CatchUpRules, Missed, Pace, Policy, Queue
from cronward.schedule.deadline import Deadline, Kind
from cronward.schedule.missed import last_slots_ms, latest_slot_ms
from cronward.schedule.planner import next_slot_ms
from tests.unit.schedule.listing import ms

PACE = Pace(immediate=5, spacing_ms=5_000, agent_delay_ms=120_000)
HOURLY = Cron("0 * * * *", "UTC", 0)
MINUTELY = Cron("* * * * *", "UTC", 0)
EIGHT = ms("2026-05-01T08:00")
HOUR = 3_600_000


def missed(schedule: Schedule, oldest_ms: int, now_ms: int, **own: object) -> Missed:
    numbers = catch_up.rules(CatchUpConfig(), CatchUp(**own))  # type: ignore[arg-type]  # as the test says
    return catch_up.missed(schedule, numbers, job_id="job-1", oldest_ms=oldest_ms, now_ms=now_ms)


# which


def test_b085_latest_is_one_run_with_the_last_slot() -> None:
    assert missed(HOURLY, EIGHT, EIGHT + 8 * HOUR + 5) == Missed([EIGHT + 8 * HOUR], EIGHT + 9 * HOUR)


def test_b082_b083_the_next_slot_is_never_past_and_many_missed_slots_stop_nothing() -> None:
    now_ms = ms("2026-05-01T09:00:01")
    four_hourly = Cron("0 */4 * * *", "UTC", 0)
    assert missed(four_hourly, ms("2026-05-01T04:00"), now_ms) == Missed([EIGHT], ms("2026-05-01T12:00"))
    assert missed(MINUTELY, EIGHT, EIGHT + 180 * 60_000) == Missed([EIGHT + 180 * 60_000], EIGHT + 181 * 60_000)


def test_none_leaves_out_all_but_one_shots() -> None:
    assert missed(HOURLY, EIGHT, EIGHT + HOUR, policy="none") == Missed([], EIGHT + 2 * HOUR)
    assert missed(At(iso_utc(EIGHT)), EIGHT, EIGHT + HOUR, policy="none") == Missed([EIGHT], None)


def test_all_is_bounded_and_keeps_the_newest() -> None:
    assert missed(HOURLY, EIGHT, EIGHT + 3 * HOUR, policy="all").wanted_ms == [EIGHT + HOUR * k for k in range(4)]
    bounded = missed(HOURLY, EIGHT, EIGHT + 30 * HOUR, policy="all", max_runs=3)
    assert bounded.wanted_ms == [EIGHT + HOUR * k for k in (28, 29, 30)]


def test_b079_a_slot_that_is_too_old_is_not_run() -> None:
    daily = Cron("0 11 * * *", "UTC", 0)
    eleven = ms("2026-05-01T11:00")
    late = ms("2026-05-01T22:10")
    assert missed(daily, eleven, late, max_age_seconds=1800).wanted_ms == []
    assert missed(daily, eleven, eleven + 1_800_000, max_age_seconds=1800).wanted_ms == [eleven]
    assert missed(At(iso_utc(eleven)), eleven, late, max_age_seconds=1800).wanted_ms == []
    assert missed(HOURLY, EIGHT, EIGHT + 5 * HOUR + 1, policy="all", max_age_seconds=7200).wanted_ms == [
        EIGHT + 4 * HOUR,
        EIGHT + 5 * HOUR,
    ]


def test_the_job_wins_over_the_configuration() -> None:
    config = CatchUpConfig(policy="none", max_runs=4, max_age_s=60)
    assert catch_up.rules(config, None) == CatchUpRules(Policy.NONE, 4, 60_000)
    assert catch_up.rules(config, CatchUp("all", 7, 0)) == CatchUpRules(Policy.ALL, 7, 0)


@given(
    st.sampled_from(
        [Every(7_000, 3), Every(60_000, 0), MINUTELY, HOURLY, Cron("*/7 9-11 * * 1-5", "Europe/Berlin", 0)]
    ),
    st.integers(ms("2026-03-20"), ms("2026-04-10")),
    st.integers(0, 6 * HOUR),
    st.integers(1, 5),
)
def test_the_last_slots_are_those_that_a_walk_finds(schedule: Schedule, from_ms: int, for_ms: int, count: int) -> None:
    now_ms = from_ms + for_ms
    slots = [from_ms]
    while (slot_ms := next_slot_ms(schedule, job_id="j", after_ms=slots[-1])) is not None and slot_ms <= now_ms:
        slots.append(slot_ms)
    assert last_slots_ms(schedule, job_id="j", from_ms=from_ms, now_ms=now_ms, count=count) == slots[-count:]


def test_a_second_job_that_was_down_for_ten_years_is_found_quickly() -> None:
    began = time.process_time()
    now_ms = EIGHT + 10 * 366 * 24 * HOUR
    for schedule in (Cron("* * * * * *", "Europe/Berlin", 0), Every(1, 0)):
        assert latest_slot_ms(schedule, job_id="j", from_ms=EIGHT, now_ms=now_ms) == now_ms
    assert time.process_time() - began < 0.5


# when


def test_pitfall_22_twelve_commands_and_three_agent_jobs() -> None:
    queue = Queue(PACE, EIGHT)
    commands = [queue.deadline(slot, EIGHT + 9 * HOUR) for slot in range(12)]
    agents = [queue.deadline(slot, EIGHT + 9 * HOUR, waits_for_agent=True) for slot in range(3)]
    due = [deadline.due_ms - EIGHT for deadline in commands if deadline]
    assert due == [0] * 5 + [5_000 * k for k in range(1, 8)]
    assert [deadline.due_ms - EIGHT for deadline in agents if deadline] == [120_000 + 5_000 * k for k in (7, 8, 9)]
    assert commands[6] == Deadline(EIGHT + 10_000, Kind.CATCH_UP, 6)


def test_an_agent_job_is_never_immediate() -> None:
    deadline = Queue(PACE, EIGHT).deadline(1, None, waits_for_agent=True)
    assert deadline == Deadline(EIGHT + 120_000, Kind.CATCH_UP, 1)


def test_a_thousand_overdue_minutely_jobs_do_not_starve() -> None:
    natural_ms = EIGHT + 60_000
    queue = Queue(PACE, EIGHT)
    found = [queue.deadline(EIGHT - 1, natural_ms) for _ in range(1000)]
    kept = [deadline.due_ms for deadline in found if deadline is not None]
    assert len(kept) == 5 + 11
    assert max(kept) < natural_ms
    # those that were dropped take no place from a job that can wait
    assert queue.deadline(EIGHT - 1, EIGHT + HOUR) == Deadline(EIGHT + 60_000, Kind.CATCH_UP, EIGHT - 1)


@pytest.mark.parametrize(
    ("wanted", "natural_ms", "deadline"),
    [
        ([1, 2], EIGHT + HOUR, Deadline(EIGHT + 5_000, Kind.CATCH_UP, 1)),
        ([1, 2], EIGHT + 5_000, Deadline(EIGHT + 5_000)),
        ([], EIGHT + HOUR, Deadline(EIGHT + HOUR)),
        ([1], None, Deadline(EIGHT + 5_000, Kind.CATCH_UP, 1)),
        ([], None, None),
    ],
)
def test_what_follows_a_missed_slot(wanted: list[int], natural_ms: int | None, deadline: Deadline | None) -> None:
    assert catch_up.following(Missed(wanted, natural_ms), PACE, EIGHT) == deadline
