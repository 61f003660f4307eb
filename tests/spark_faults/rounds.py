"""How often is each fault tried? `LANCELAKE_FAULT_ROUNDS`; without it a few of them, once."""

from __future__ import annotations

import os

ROUNDS = int(os.environ.get("LANCELAKE_FAULT_ROUNDS", "0"))
