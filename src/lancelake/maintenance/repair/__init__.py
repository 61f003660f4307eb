"""Repair a damaged table: metadata that can be rebuilt is rebuilt in a new version."""

from lancelake.maintenance.repair.draft import RepairOptions
from lancelake.maintenance.repair.plan import (
    HealthyVersion,
    Left,
    Repaired,
    RepairPlan,
    apply,
    find_healthy,
    plan,
    repair,
    restore_healthy,
)

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
