"""Recorded verdicts of official releases, and the pairs of changes they are for."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("golden")
CHANGES = FOLDER / "changes.json"

Verdicts = dict[tuple[str, str], str]
"""What is said to (mine, theirs): `ok, N rows`, `retry`, `conflict` or `invalid: reason`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change as the latest release records it: its transactions, its deletion files."""

    transactions: tuple[bytes, ...]
    deletions: Mapping[str, bytes]
    knows_rows: bool
    moves: bytes | None = None
    """Where rows went, for indices to follow; a compaction may add it outside its transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A table, as the files of its first version, and the changes made from it."""

    table: Mapping[str, bytes]
    changes: Mapping[str, Change]


def load_verdicts(release: str) -> dict[str, Verdicts]:
    """Return what a release said, by scene."""
    body = json.loads(_verdicts(release).read_text(encoding="utf-8"))
    return {
        scene: {
            (mine, theirs): verdict
            for theirs, said in judged.items()
            for verdict, names in said.items()
            for mine in names
        }
        for scene, judged in body.items()
    }


def store_verdicts(release: str, scene: str, found: Mapping[str, Mapping[str, str]]) -> None:
    """Keep what a release said of a scene: by theirs and mine."""
    said = {theirs: _grouped(each) for theirs, each in found.items()}
    _keep(_verdicts(release), scene, said)


def load_scenes() -> dict[str, Scene]:
    """Return the tables and changes by scene."""
    body = json.loads(CHANGES.read_text(encoding="utf-8"))
    return {
        name: Scene(
            table=_unpacked(scene["table"]),
            changes={
                key: Change(
                    transactions=tuple(_bytes(t) for t in each["transactions"]),
                    deletions=_unpacked(each["deletions"]),
                    knows_rows=each["knows_rows"],
                    moves=_bytes(each["moves"]) if "moves" in each else None,
                )
                for key, each in scene["changes"].items()
            },
        )
        for name, scene in body.items()
    }


def store_scene(name: str, scene: Scene) -> None:
    """Keep a table and the changes made from it."""
    changes = {
        key: {
            "transactions": [_text(t) for t in each.transactions],
            "deletions": _packed(each.deletions),
            "knows_rows": each.knows_rows,
            **({} if each.moves is None else {"moves": _text(each.moves)}),
        }
        for key, each in scene.changes.items()
    }
    _keep(CHANGES, name, {"table": _packed(scene.table), "changes": changes})


def _keep(path: Path, scene: str, found: object) -> None:
    """Replace what is kept of one scene."""
    body = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    body[scene] = found
    path.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")


def _verdicts(release: str) -> Path:
    return FOLDER / f"{release}.json"


def _grouped(said: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for mine, verdict in said.items():
        found.setdefault(verdict, []).append(mine)
    return dict(sorted(found.items()))


def _packed(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: _text(data) for path, data in sorted(files.items())}


def _unpacked(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: _bytes(text) for path, text in files.items()}


def _text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _bytes(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
