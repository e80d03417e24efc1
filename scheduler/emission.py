"""Sending what a turn led to, after its commit and never before."""

import msgspec
import zmq

from cronward.protocol import control, launch, log, run
from cronward.protocol.views import RunView
from cronward.scheduler import launcher_desk, notices, service_commands
from cronward.scheduler.effects import Address, Effects
from cronward.scheduler.ports import Ports
from cronward.scheduler.store import Store
from cronward.scheduler.world import Turn, World


class Emission:
    """Speaks on all sockets."""

    def __init__(self, world: World, store: Store, ports: Ports) -> None:
        self._world = world
        self._store = store
        self._ports = ports

    def send(self, effects: Effects) -> None:
        """Everything, in the order of Effects."""
        for address, message in effects.to_executors:
            self._to_executor(address, message)
        for address, answer in effects.launcher_answers:
            self._answer_launcher(address, answer)
        for order in effects.to_launcher:
            self._to_launcher(order)
        for reply in effects.replies:
            self._ports.answer(reply.socket, reply.address, reply.body)
        self._ports.flush()
        self._publish_all(effects)

    def _to_executor(self, address: Address, message: run.ToExecutor) -> None:
        try:
            self._ports.run.send_multipart([*address, run.encode(message)], zmq.DONTWAIT)
        except zmq.ZMQError as error:  # it repeats what it wants answered, from its new address
            log.debug("executor.unreachable", f"an answer could not be sent: {error}", run=message.run)

    def _answer_launcher(self, address: Address, message: launch.ToLauncher) -> None:
        try:
            self._ports.launch.send_multipart([*address, launch.encode(message)], zmq.DONTWAIT)
        except zmq.ZMQError as error:  # it repeats what it wants answered, from its new address
            log.debug("launcher.unreachable", f"an answer could not be sent: {error}")

    def _to_launcher(self, message: launch.ToLauncher) -> None:
        link = self._world.link
        if link.address is None:
            return
        if isinstance(message, launch.Launch) and not link.can_launch():
            return  # its epoch was closed by an earlier launch of this very turn; the inventory will say: absent
        try:
            self._ports.launch.send_multipart([*link.address, launch.encode(message)], zmq.DONTWAIT)
        except zmq.ZMQError as error:
            if isinstance(message, launch.Launch):
                self._close_epoch(f"a launch could not be sent: {error}")
            return
        if isinstance(message, launch.Launch):
            link.unanswered[message.run] = self._world.clock.mono_ms()

    def _close_epoch(self, why: str) -> None:
        turn = Turn(self._world, self._store)
        launcher_desk.close_epoch(turn, why)

    def _publish_all(self, effects: Effects) -> None:
        if effects.run_events or effects.job_events:
            self._world.changes += 1
        for job_event in effects.job_events:
            self.publish("cron", job_event)
        for run_event in effects.run_events:
            _log_settled(run_event)
            self.publish("cron", run_event)
        if effects.tick:
            notices.send(self._world, effects.notices)
        for notice in effects.notices:
            self.publish("notice", notice)
        if effects.service_changed:
            self.publish("service", service_commands.status(Turn(self._world, self._store)))
        if effects.tick:
            self.publish("tick", Tick(self._world.clock.wall_ms()))

    def publish(self, name: str, payload: msgspec.Struct) -> None:
        """One numbered event."""
        self._world.event_seq += 1
        event = control.Event(
            event=name,
            instance=self._world.instance,
            seq=self._world.event_seq,
            payload=msgspec.Raw(msgspec.json.encode(payload)),
        )
        self._ports.publish(msgspec.json.encode(event))


def _log_settled(run: RunView) -> None:
    if run.status is None:
        return
    said = f"{run.job_name}: {run.state}" + (f" ({run.reason})" if run.reason else "")
    log.info("run.settled", said, run=run.run_id, job=run.job_id, state=run.state, reason=run.reason)


class Tick(msgspec.Struct, frozen=True, rename="camel"):
    """The heartbeat of the event stream."""

    now_ms: int
