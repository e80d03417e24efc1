"""The installed configuration: immutable snapshots with growing versions; a bad file keeps the last good one."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from cronward.protocol import config as configs
from cronward.protocol import job as jobs
from cronward.protocol import log
from cronward.protocol.errors import ConfigError
from cronward.protocol.launch import LauncherConfig
from cronward.protocol.rundir import Limits


class Settings:
    """Holds the current snapshot. `error` says why the file as it is now could not be installed, or is None."""

    def __init__(
        self, path: Path, environ: Mapping[str, str], config: configs.Config, *, must_exist: bool = False
    ) -> None:
        self.path = path
        self._environ = environ
        self._must_exist = must_exist
        self.snapshot = configs.Snapshot(1, config)
        self.error: str | None = None

    @property
    def config(self) -> configs.Config:
        return self.snapshot.config

    def reload(self) -> bool:
        """Reads the file again; True if a new snapshot was installed. What needs a restart is named and kept."""
        try:
            new = configs.load(self.path, self._environ, must_exist=self._must_exist)
        except ConfigError as error:
            self.error = error.message
            log.error("config.refused", "the configuration is bad; the last good one stays", reason=error.message)
            return False
        self.error = None
        kept = configs.changed_restart_only(self.config, new)
        if kept:
            self.error = f"{', '.join(kept)} changed; this takes effect at the next start of the scheduler"
            log.warning("config.needs_restart", self.error, keys=kept)
            new = msgspec.structs.replace(new, store_key=self.config.store_key, status=self.config.status)
        self.snapshot = configs.Snapshot(self.snapshot.version + 1, new)
        log.set_level(new.log_level)
        log.info("config.installed", "a new configuration is in force", version=self.snapshot.version)
        return True

    def launcher_config(self) -> LauncherConfig:
        """What the launcher works by."""
        config = self.config
        return LauncherConfig(
            version=self.snapshot.version,
            ready=config.executors.ready,
            executors_max=config.executors.max,
            grace_ms=int(config.command.grace_s * 1000),
            gateway_kind=config.gateway.kind,
            gateway_url=config.gateway.url,
            gateway_interval_ms=int(config.gateway.interval_s * 1000),
            gateway_timeout_ms=int(config.gateway.timeout_s * 1000),
        )


def limits(config: configs.Config, payload: jobs.Payload) -> Limits:
    """What a run of `payload` is allowed under `config`; 0 means no limit. Fixed when the run becomes active."""
    command = config.command
    timeout_s = command.timeout_s if payload.timeout_seconds is None else payload.timeout_seconds
    silence_s = (
        command.no_output_timeout_s if payload.no_output_timeout_seconds is None else payload.no_output_timeout_seconds
    )
    return Limits(
        timeout_ms=int(timeout_s * 1000),
        no_output_ms=int(silence_s * 1000),
        setup_ms=int(command.setup_timeout_s * 1000),
        grace_ms=int(command.grace_s * 1000),
        cleanup_ms=int(command.cleanup_timeout_s * 1000),
        output_max_bytes=payload.output_max_bytes or command.output_max_bytes,
    )
