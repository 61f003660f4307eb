"""Repair a damaged table: metadata that can be rebuilt is rebuilt in a new version."""

from lancelake.table.repair.healthy import HealthyVersion, find_healthy, restore_healthy
from lancelake.table.repair.options import RepairOptions
from lancelake.table.repair.plan import Left, RepairPlan, plan
from lancelake.table.repair.run import Repaired, apply, repair

__all__ = [
    "HealthyVersion",
    "Left",
    "RepairOptions",
    "RepairPlan",
    "Repaired",
    "apply",
    "find_healthy",
    "plan",
    "repair",
    "restore_healthy",
]
