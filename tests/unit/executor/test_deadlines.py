from cronward.executor.deadlines import Deadlines


def test_the_earliest_comes_first_and_once() -> None:
    deadlines: Deadlines[str] = Deadlines()
    assert deadlines.next_ms() is None
    assert deadlines.pop_due(10**12) is None
    deadlines.set("later", 20)
    deadlines.set("sooner", 10)
    assert deadlines.next_ms() == 10
    assert deadlines.pop_due(9) is None
    assert deadlines.pop_due(20) == "sooner"
    assert deadlines.pop_due(20) == "later"
    assert deadlines.pop_due(20) is None


def test_a_deadline_can_be_moved_and_cleared() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("a", 10)
    deadlines.set("a", 30)
    assert deadlines.pop_due(20) is None
    deadlines.clear("a", "never set")
    assert "a" not in deadlines
    deadlines.set("b", 1)
    deadlines.clear_all()
    assert deadlines.next_ms() is None
