"""Which run somebody means: by its id, its key (or six or more of its digits), or by a job, whose latest run it is."""

import re
from pathlib import Path

from cronward.cli.session import Session
from cronward.protocol.control import RunRef, RunsParams
from cronward.protocol.errors import Code, CronwardError
from cronward.protocol.ids import run_key
from cronward.protocol.views import RunList, RunView

KEY = re.compile(r"[0-9a-f]{6,32}")

_NO_RUN = (Code.RUN_NOT_FOUND, Code.INVALID_REQUEST)


def find_run(session: Session, text: str) -> RunView:
    """The run as the scheduler knows it. Raises RUN_NOT_FOUND, RUN_AMBIGUOUS, or what a request can raise."""
    try:
        return session.request("run.get", RunRef(run_id=text), RunView)
    except CronwardError as error:
        if error.code not in _NO_RUN:
            raise
    try:
        latest = session.request("cron.runs", RunsParams(id=text, limit=1, live=True), RunList).entries
    except CronwardError as error:
        if error.code is not Code.JOB_NOT_FOUND:
            raise
        raise CronwardError(Code.RUN_NOT_FOUND, f"{text!r} is neither a run nor a job", run=text) from None
    if not latest:
        raise CronwardError(Code.RUN_NOT_FOUND, f"the job {text!r} has no run yet", run=text)
    return latest[0]


def find_directory(runs: Path, text: str) -> Path:
    """The run's directory without asking anybody. Raises RUN_NOT_FOUND or RUN_AMBIGUOUS."""
    exact = runs / run_key(text)
    if exact.is_dir():
        return exact
    found = sorted(runs.glob(f"{text}*")) if KEY.fullmatch(text) else []
    if not found:
        message = f"no scheduler answers, and {runs} has no run {text!r}; without one a run is named by its id or key"
        raise CronwardError(Code.RUN_NOT_FOUND, message, run=text)
    if len(found) > 1:
        keys = ", ".join(path.name[:12] for path in found[:5])
        raise CronwardError(Code.RUN_AMBIGUOUS, f"{text!r} may be any of {keys}; give more digits", run=text)
    return found[0]
