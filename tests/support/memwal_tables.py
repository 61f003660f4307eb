"""Tables with a MemWAL that pylance 14.0.2 wrote; see tests/golden/memwal/make.py."""

from __future__ import annotations

import uuid
from pathlib import Path

TABLES = Path(__file__).resolve().parents[1] / "golden" / "memwal" / "tables"
SIMPLE, COMPOSITE = TABLES / "simple", TABLES / "composite"
BUCKET = uuid.UUID("4a388480-a25b-59a8-b058-24217f980256")
UNSHARDED = uuid.UUID("aa48498d-ac91-59e2-8452-69f46010ace2")


def generation_dir(table: Path, generation: int) -> Path:
    """Return the folder of a generation of the table's only region."""
    (found,) = table.glob(f"_mem_wal/*/*_gen_{generation}")
    return found
