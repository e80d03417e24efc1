"""Reading what a run is to do."""

import os

import msgspec

from cronward.executor.steps import SetupFailed
from cronward.protocol import job, rundir
from cronward.protocol.outcome import Reason
from cronward.protocol.rundir import Damaged, Intent


def read(directory: str, run: str) -> tuple[Intent, job.Command]:
    """The intent of `run` and its command. Raises SetupFailed for what is missing, damaged or another run's."""
    path = f"{directory}/{rundir.INTENT}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        with open(fd, "rb", buffering=0) as file:
            data = file.read(rundir.SEALED_MAX_BYTES + 1)
        intent = rundir.decode_intent(data or b"")
        if intent.run != run:
            raise Damaged(f"{rundir.INTENT} is of another run")
        return intent, job.decode(intent.job).payload
    except OSError as error:
        raise SetupFailed(Reason.SETUP_FAILED, f"{path}: {error.strerror}") from None
    except (Damaged, msgspec.DecodeError) as error:
        raise SetupFailed(Reason.INVALID_SPEC, f"{directory}: {error}") from None
