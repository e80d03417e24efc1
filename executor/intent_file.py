"""Reading what a run is to do."""

import msgspec

from cronward.executor.steps import SetupFailed
from cronward.protocol import job, rundir
from cronward.protocol.outcome import Reason
from cronward.protocol.rundir import Damaged, Intent


def read(directory: str, run: str) -> tuple[Intent, job.Command]:
    """The intent of `run` and its command. Raises SetupFailed for what is missing, damaged or another run's."""
    path = f"{directory}/{rundir.INTENT}"
    try:
        with open(path, "rb", buffering=0) as file:
            intent = rundir.decode_intent(file.readall())
        if intent.run != run:
            raise Damaged(f"{rundir.INTENT} is of another run")
        return intent, job.decode(intent.job).payload
    except OSError as error:
        raise SetupFailed(Reason.SETUP_FAILED, f"{path}: {error.strerror}") from None
    except (Damaged, msgspec.DecodeError) as error:
        raise SetupFailed(Reason.INVALID_SPEC, f"{directory}: {error}") from None
