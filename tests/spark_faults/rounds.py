"""Number of rounds per fault: `LANCELAKE_FAULT_ROUNDS`; by default a few of them, once."""

from __future__ import annotations

import os

ROUNDS = int(os.environ.get("LANCELAKE_FAULT_ROUNDS", "0"))
