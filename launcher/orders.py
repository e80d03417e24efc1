"""What the scheduler says, and what is done about it."""

from collections.abc import Callable

from cronward.launcher.exits import Exits
from cronward.launcher.forgetting import Forgetting
from cronward.launcher.known_runs import KnownRuns
from cronward.launcher.launches import Launches
from cronward.launcher.link import Link
from cronward.launcher.pool import Pool
from cronward.launcher.session import Order, Session
from cronward.launcher.watch import Watch
from cronward.protocol import launch, log
from cronward.protocol.clock import Clock
from cronward.protocol.launch import GatewayState, LauncherConfig, RefuseReason, RunState


class Orders:
    """Obeys each message as the session allows. `inventory` is what was found of the runs that the last Welcome named.

    `gateway` gives what the probe saw last, `configure` takes a configuration that is to be used from now on.
    """

    def __init__(
        self,
        session: Session,
        link: Link,
        clock: Clock,
        known: KnownRuns,
        launches: Launches,
        pool: Pool,
        watch: Watch,
        exits: Exits,
        forgetting: Forgetting,
        gateway: Callable[[], GatewayState],
        configure: Callable[[LauncherConfig], None],
    ) -> None:
        self.inventory: dict[str, RunState] = {}
        self._session = session
        self._link = link
        self._clock = clock
        self._known = known
        self._launches = launches
        self._pool = pool
        self._watch = watch
        self._exits = exits
        self._forgetting = forgetting
        self._gateway = gateway
        self._configure = configure
        self._config_version = 0

    def handle(self, message: launch.ToLauncher) -> None:
        """A message that fails is logged and costs nothing else; a launch is answered all the same."""
        try:
            self._obey(self._session.receive(message, self._clock.mono_ms()), message)
        except Exception:
            log.error("launcher.message_failed", f"a {type(message).__name__} failed", exc_info=True)
            if isinstance(message, launch.Launch) and not self._known.is_known(message.run):
                self._launches.refuse(message.run, RefuseReason.SPAWN_FAILED, "the launcher failed; its log says how")

    def _obey(self, order: Order, message: launch.ToLauncher) -> None:
        match message:
            case launch.Welcome() if order is Order.ENTER_EPOCH:
                self._enter_epoch(message)
            case launch.Launch() if order is Order.ACCEPT_LAUNCH:
                self._take(message)
            case launch.Launch() if order is Order.REFUSE_STALE:
                self._refuse_unknown(message, RefuseReason.STALE_EPOCH, "the launch is of another epoch")
            case launch.Launch() if order is Order.REFUSE_LEAVING:
                self._refuse_unknown(message, RefuseReason.LEAVING, "the launcher is ending")
            case launch.Ack(run):
                self._exits.acknowledge(run)
            case launch.Cancel(run, why):
                self._cancel(run, why)
            case launch.Forget(runs):
                self._link.send(launch.Forgotten(self._forgetting.forget(runs)))
            case launch.Configure(config) if config.version > self._config_version:
                self._use(config)
            case _:
                pass  # the session took from it what there was

    def _enter_epoch(self, welcome: launch.Welcome) -> None:
        """From here on launches of other epochs are refused: what is absent now can never start.

        Answers of the last epoch need not be sent any more, except refusals, which say more than an absence."""
        self._link.drop_answers()
        self._use(welcome.config)
        self.inventory = {run: self._known.state_of(run) for run in welcome.active}
        for run in welcome.active:
            if (refusal := self._launches.refusal(run)) is not None:
                self._link.answer(refusal)
        log.info("launcher.welcomed", f"epoch {welcome.epoch} of {welcome.instance}", active=len(welcome.active))

    def _use(self, config: LauncherConfig) -> None:
        self._config_version = config.version
        self._configure(config)

    def _take(self, message: launch.Launch) -> None:
        """A second launch of a run gets what is known of the first; an Exited, or the first answer, comes anyway."""
        run = message.run
        if (refusal := self._launches.refusal(run)) is not None:
            self._link.answer(refusal)
        elif (state := self._known.state_of(run)) is RunState.HELD:
            self._link.answer(launch.Accepted(run, self._known.executor_pid(run)))
        elif state is RunState.ABSENT and message.needs_gateway and self._gateway() is not GatewayState.UP:
            self._launches.refuse(run, RefuseReason.GATEWAY_UNAVAILABLE, f"the gateway is {self._gateway().value}")
        elif state is RunState.ABSENT:
            self._launches.receive(message)

    def _refuse_unknown(self, message: launch.Launch, reason: RefuseReason, detail: str) -> None:
        """Unless its run was received earlier, in its own epoch."""
        if self._known.state_of(message.run) is RunState.ABSENT:
            self._launches.refuse(message.run, reason, detail)

    def _cancel(self, run: str, why: str) -> None:
        now_ms = self._clock.mono_ms()
        if run in self._launches:
            self._launches.refuse(run, RefuseReason.CANCELLED, why)
        elif (executor := self._pool.holder(run)) is not None and executor.live is not None:
            executor.cancel(run, why)
            executor.live.cancel_ms = executor.live.cancel_ms or now_ms
        elif self._known.state_of(run) is RunState.HELD and (live := self._watch.get(run)) is not None:
            live.cancel_ms = live.cancel_ms or now_ms
