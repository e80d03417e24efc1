"""The table of what executors say."""

import typing

from cronward.launcher.executor_handle import TABLE, End, State
from cronward.protocol import pair


def test_the_table_is_total() -> None:
    events = [*typing.get_args(pair.FromExecutor), End]
    assert set(TABLE) == {(state, event) for state in State for event in events}
