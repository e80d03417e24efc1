"""One message of every kind with every field set, and the same with nothing but what has no default."""

from cronward.protocol import launch, outcome, pair, run, rundir
from cronward.protocol.identity import ProcessIdentity
from cronward.protocol.launch import GatewayState, Gone, LauncherConfig, PoolState, RefuseReason, RunState

ID = "cron-slot-v1.WyJtYWluIiwiam9iIiwxNzAwMDAwMDAwMDAwXQ"
WHO = ProcessIdentity(4711, 123456789, "0f8fad5b-d9cb-469f-a165-70867728950e")
LIMITS = rundir.Limits(600_000, 30_000, 60_000, 5_000, 20_000, 16_777_216)
CONFIG = LauncherConfig(3, 2, 64, 5_000, "http", "http://127.0.0.1:18789", 4_000, 1_500)
STREAM = outcome.Stream(9, 4, "ab" * 32, b"head\xff", b"tail", True)
SECRET = "s" * 32

LAUNCH: list[launch.FromLauncher | launch.ToLauncher] = [
    launch.Register(WHO, "0.1.0"),
    launch.Inventory("i", 7, {"a": RunState.HELD, "b": RunState.ABSENT}),
    launch.Accepted(ID, 99),
    launch.Refused(ID, RefuseReason.SPAWN_FAILED, "fork: EAGAIN"),
    launch.Exited(ID, Gone.REPORTED, b"outcome", "detail", 2),
    launch.Heartbeat("i", 7, GatewayState.DRAINING, PoolState(1, 2, 3, 4, 5), "no space"),
    launch.Leaving("i", 7),
    launch.Forgotten(["a", "b"]),
    launch.Welcome("i", 7, CONFIG, ["a"]),
    launch.Reconciled("i", 7),
    launch.Launch("i", 7, ID, "scheduled", b"{}", LIMITS, SECRET, "/usr/bin:/bin", True, True),
    launch.Ack(ID),
    launch.Beat("i", 7),
    launch.RegisterAgain(),
    launch.Cancel(ID, "asked"),
    launch.Left("i", 7),
    launch.Forget(["a", "b"]),
    launch.Configure(CONFIG),
]
RUN: list[run.FromExecutor | run.ToExecutor] = [
    run.Hello(ID, SECRET, 99),
    run.Progress(ID, "running", 10, 20),
    run.Report(ID, SECRET, b"outcome", False),
    run.HelloAnswer(ID, "i", "asked"),
    run.Recorded(ID),
]
PAIR: list[pair.FromExecutor | pair.ToExecutor] = [
    pair.HandOver(ID, "/var/lib/cronward/runs/00", SECRET),
    pair.CancelRun(ID, "asked"),
    pair.Ready(WHO),
    pair.Free(ID, True, False, 18_432),
    pair.Unfit("terminated"),
]
INTENT = rundir.Intent(ID, "scheduled", b"{}", LIMITS, WHO, 5_000_000, "/usr/bin:/bin", True)
OUTCOME = outcome.Outcome(
    ID,
    outcome.Status.ERROR,
    outcome.Reason.EXIT_CODE,
    "exit status 3",
    1_700_000_000_000,
    1_700_000_000_250,
    250,
    3,
    15,
    STREAM,
    STREAM,
    1,
    True,
    12,
    3_400,
)
