"""Consistency checks of a table, reported as findings."""

from lancelake.table.check.finding import Finding, Severity
from lancelake.table.check.progress import Progress
from lancelake.table.check.run import Versions, check

__all__ = ["Finding", "Progress", "Severity", "Versions", "check"]
