"""Retry limits of Spark jobs after conflicts, whose attempts take longer than local ones."""

from __future__ import annotations

from lancelake.table.conflict_retry import Retries

# An attempt may take minutes: delays as long as attempts would be wasted.
PATIENCE = Retries(timeout_s=3600.0, longest_wait_s=5.0)
