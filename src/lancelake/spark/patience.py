"""How long does a job of Spark try again after conflicts? Attempts take longer than local ones."""

from __future__ import annotations

from lancelake.table.run_again import Retries

PATIENCE = Retries(timeout_s=3600.0)
