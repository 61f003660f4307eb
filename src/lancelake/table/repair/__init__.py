"""Repair a damaged table: metadata that can be rebuilt is rebuilt in a new version."""

from lancelake.table.repair.healthy import WayBack, go_back, way_back
from lancelake.table.repair.options import Wishes
from lancelake.table.repair.plan import Left, RepairPlan, plan
from lancelake.table.repair.run import Repaired, apply, repair

__all__ = [
    "Left",
    "RepairPlan",
    "Repaired",
    "WayBack",
    "Wishes",
    "apply",
    "go_back",
    "plan",
    "repair",
    "way_back",
]
