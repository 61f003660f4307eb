"""What do the official releases say? `python -m tests.interop.verdicts.record` asks them anew."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from lancelake.format import transaction
from lancelake.storage.location import Location
from lancelake.table.open import AtVersion, Latest, open_snapshot
from tests.interop.verdicts.golden import Change, Scene, store_scenes, store_verdicts
from tests.support.official import RELEASES, Official

SCENES = {"row addresses": False, "stable row ids": True}
ASK = """
import runpy
from pathlib import Path
names = runpy.run_path(script)
result = names["record"](Path(uri), stable_row_ids=stable_row_ids)
"""
SCRIPT = Path(__file__).with_name("official_changes.py")


def main() -> None:
    """Ask every release about every scene; the latest one's changes are kept too."""
    scenes: dict[str, Scene] = {}
    for release in RELEASES:
        verdicts: dict[str, dict[str, dict[str, str]]] = {}
        for name, stable in SCENES.items():
            with tempfile.TemporaryDirectory() as folder, Official(release, timeout_s=600) as asked:
                root = Path(folder)
                found = asked.run(root, ASK, script=SCRIPT, stable_row_ids=stable)
                verdicts[name] = found["verdicts"]
                if release == RELEASES[-1]:
                    scenes[name] = _scene(root / "table", found)
        store_verdicts(release, verdicts)
    store_scenes(scenes)


def _scene(table: Path, found: dict[str, Any]) -> Scene:
    knowing = set(found["knowing"])
    return Scene(
        table={**_files(table, "_versions"), **_files(table, "_deletions")},
        changes={
            name: _change(Path(place), _files(table, "_deletions"), knows_rows=name in knowing)
            for name, place in found["alone"].items()
        },
    )


def _change(table: Path, others: dict[str, bytes], *, knows_rows: bool) -> Change:
    where = Location.parse(table)
    latest = open_snapshot(where, Latest()).version
    made = [open_snapshot(where, AtVersion(v)).transaction for v in range(2, latest + 1)]
    return Change(
        transactions=tuple(transaction.encode(t) for t in made if t is not None),
        deletions={k: v for k, v in _files(table, "_deletions").items() if k not in others},
        knows_rows=knows_rows,
    )


def _files(table: Path, folder: str) -> dict[str, bytes]:
    found = (table / folder).rglob("*") if (table / folder).exists() else ()
    files = (p for p in found if p.is_file() and p.suffix != ".json")
    return {p.relative_to(table).as_posix(): p.read_bytes() for p in files}


if __name__ == "__main__":
    main()
