"""Record the verdicts of official releases: `python -m tests.interop.verdicts.record`.

Names of scenes as arguments limit it to these.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from lancelake.commit.snapshot import AtVersion, Latest, open_snapshot
from lancelake.format import index_meta
from lancelake.format.index_meta import FRAGMENT_REUSE
from lancelake.format.operations import encode_transaction
from lancelake.storage.location import Location
from tests.interop.verdicts.golden import Change, Scene, store_scene, store_verdicts
from tests.interop.verdicts.scenes import SETTINGS
from tests.support.official import RELEASES, Official

ASK = """
import runpy
from pathlib import Path
names = runpy.run_path(script)
result = names["record"](Path(uri), settings=settings, chosen=chosen, ours=ours)
"""
SCRIPT = Path(__file__).with_name("official_changes.py")
OURS = Path(__file__).with_name("our_progress.py")


def main(names: list[str]) -> None:
    """Ask every release about the scenes; the latest one's changes are kept too."""
    for name in names or SETTINGS:
        setting = SETTINGS[name]
        for release in setting.releases:
            with tempfile.TemporaryDirectory() as folder, Official(release, timeout_s=900) as asked:
                root = Path(folder)
                found = asked.run(
                    root,
                    ASK,
                    script=SCRIPT,
                    settings=setting.table,
                    chosen=list(setting.changes),
                    ours=[sys.executable, str(OURS)],
                )
                store_verdicts(release, name, found["verdicts"])
                if release == RELEASES[-1]:
                    store_scene(name, _scene(root / "table", found))


def _scene(table: Path, found: dict[str, Any]) -> Scene:
    knowing = set(found["knowing"])
    return Scene(
        table={**_files(table, "_versions"), **_files(table, "_deletions")},
        changes={
            name: _change(
                Path(place),
                _files(table, "_deletions"),
                version=found["version"],
                knows_rows=name in knowing,
            )
            for name, place in found["alone"].items()
        },
    )


def _change(table: Path, others: dict[str, bytes], *, version: int, knows_rows: bool) -> Change:
    where = Location.parse(table)
    latest = open_snapshot(where, Latest())
    numbers = range(version + 1, latest.version + 1)
    made = [open_snapshot(where, AtVersion(v)).transaction for v in numbers]
    moves = tuple(index for index in latest.indices if index.name == FRAGMENT_REUSE)
    return Change(
        transactions=tuple(encode_transaction(t) for t in made if t is not None),
        deletions={k: v for k, v in _files(table, "_deletions").items() if k not in others},
        knows_rows=knows_rows,
        moves=index_meta.encode_section(moves) if moves else None,
    )


def _files(table: Path, folder: str) -> dict[str, bytes]:
    found = (table / folder).rglob("*") if (table / folder).exists() else ()
    files = (p for p in found if p.is_file() and p.suffix != ".json")
    return {p.relative_to(table).as_posix(): p.read_bytes() for p in files}


if __name__ == "__main__":
    main(sys.argv[1:])
