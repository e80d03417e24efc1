"""The outbox of reports."""

from cronward.launcher.exits import BATCH, RESEND_MS, Exits
from cronward.protocol.launch import Exited, Gone


def exited(run: str) -> Exited:
    return Exited(run, Gone.INTERRUPTED, None)


def test_reports_repeat_each_second_until_acknowledged() -> None:
    sent: list[str] = []

    def send(report: Exited) -> bool:
        sent.append(report.run)
        return True

    exits = Exits(send)
    exits.add(exited("a"))
    exits.resend(0)
    exits.resend(RESEND_MS - 1)
    assert sent == ["a"]
    exits.add(exited("b"))
    exits.resend(RESEND_MS)
    assert sent == ["a", "a", "b"]
    exits.acknowledge("a")
    exits.acknowledge("unheard")
    exits.resend(2 * RESEND_MS)
    assert sent[3:] == ["b"]


def test_a_turn_sends_a_bounded_number_and_an_absent_scheduler_costs_nothing() -> None:
    sent: list[str] = []
    there = False

    def send(report: Exited) -> bool:
        if there:
            sent.append(report.run)
        return there

    exits = Exits(send)
    for number in range(BATCH + 10):
        exits.add(exited(str(number)))
    exits.resend(0)
    assert sent == []
    there = True
    exits.resend(1)
    assert len(sent) == BATCH
    exits.resend(2)
    assert len(sent) == BATCH + 10
