"""Every place where bytes come in from outside, by name."""

from collections.abc import Callable

from tests.fuzz import executor_targets, file_targets, launcher_targets, schedule_targets, scheduler_targets
from tests.fuzz.engine import Target

TARGETS: dict[str, Callable[[], Target]] = {
    "control": scheduler_targets.Requests,
    "launch.from-launcher": scheduler_targets.FromLauncher,
    "launch.to-launcher": launcher_targets.OrdersToLauncher,
    "run.from-executor": scheduler_targets.FromExecutor,
    "run.to-executor": executor_targets.Answers,
    "pair.to-launcher": launcher_targets.PairToLauncher,
    "pair.to-executor": executor_targets.Packets,
    "run-directory": file_targets.RunDirectory,
    "configuration": file_targets.Configuration,
    "schedules": schedule_targets.Schedules,
}
