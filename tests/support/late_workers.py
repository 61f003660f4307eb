"""Repetition of tests whose Python worker Spark gave up too early.

Spark waits ten seconds for the worker of a stream to connect, and no setting changes that. A
machine under load may need longer; such a test says nothing about this package, and runs again.
"""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

# Of both messages: "failed to connect back" and "waiting for the Python worker to connect back".
GAVE_UP = "to connect back"
# What such a worker says when it finds that Spark has gone, to a test that expects another error.
CAME_LATE = "CANNOT_OPEN_SOCKET"
_ATTEMPTS = 8


def run_until_workers_connect(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test with its fixtures, again while Spark gave up waiting for a worker."""
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(_ATTEMPTS):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        gave_up = any(
            report.failed and (GAVE_UP in report.longreprtext or CAME_LATE in report.capstderr)
            for report in reports
        )
        if gave_up and attempt < _ATTEMPTS - 1:
            item._initrequest()  # type: ignore[attr-defined]  # the next attempt has new fixtures
            continue
        break
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
