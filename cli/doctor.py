"""`doctor`: is everything as it should be?"""

import click

from cronward.cli.findings import Level, findings_text
from cronward.cli.installation_checks import check_installation
from cronward.cli.service_checks import check_service
from cronward.cli.session import Session, print_json, with_requests
from cronward.protocol import exits


@click.command()
@with_requests
def doctor(session: Session) -> int:
    """Check the installation and the running service, and say what to do about what is wrong.

    Exits with 0 if nothing stands in the way of the service, warnings or not.

    \b
      cronward doctor
      cronward doctor --json | jq '.findings[] | select(.level != "ok")'
    """
    findings = check_installation(session) + check_service(session)
    failed = any(finding.level is Level.FAIL for finding in findings)
    if session.as_json:
        print_json({"ok": not failed, "findings": findings})
    else:
        click.echo(findings_text(findings))
    return exits.ERROR if failed else exits.OK
