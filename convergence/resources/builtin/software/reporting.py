"""Reads what a server reports of a deployment. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convergence.core.model import Json
from convergence.core.software import COMPLETE, FAILED, ServerReport

STATUS_CODE = 'deploy_status_code'
STANDARD = ('deploy_stdout', 'deploy_stderr', STATUS_CODE)
"""The outputs that a server may report for any configuration."""


def reported(
    details: Mapping[str, Json], outputs: Sequence[Mapping[str, Json]], before: Mapping[str, Json]
) -> tuple[ServerReport, str]:
    """Return the effect of a signal on a deployment, and the text of its event.

    :param outputs: those that the configuration declares.
    :param before: the values that were reported so far.
    """
    values, reasons, event = dict(before), dict[str, str](), 'deployment succeeded'
    code = details.get(STATUS_CODE)
    if code and str(code) != '0':
        reasons[STATUS_CODE] = f'Deployment exited with non-zero status code: {code}'
        event = f'deployment failed ({code})'
    for output in outputs:
        name = str(output.get('name'))
        if name not in details:
            continue
        values[name] = details[name]
        if output.get('error_output') is True:
            reasons[name] = str(details[name])
            event = 'deployment failed'
    values |= {name: details.get(name) for name in STANDARD}
    if not reasons:
        return ServerReport(COMPLETE, 'Outputs received', values), event
    return ServerReport(FAILED, ', '.join(f'{name} : {reason}' for name, reason in reasons.items()), values), event
