"""Our rules build the same versions as official releases from the same transactions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lancelake.format import operations as ops
from lancelake.format.fragment import Fragment
from lancelake.format.frozen import FrozenMap
from lancelake.format.index_meta import FRAGMENT_REUSE, IndexMetadata
from lancelake.format.operations import MapUpdate, Transaction
from lancelake.format.rowids import VersionSequence
from lancelake.format.schema import Schema
from lancelake.txn import build, table_metadata
from lancelake.txn.fragments import row_id_values
from lancelake.txn.options import BuildOptions, TableState, VersionChoices
from lancelake.txn.overlap import holds_addresses
from tests.interop.official_histories import HISTORIES, LATER_HISTORIES, Step, read, written
from tests.support.official import Official

CASES = [
    pytest.param(name, stable, id=f"{name.replace(' ', '_')}-{'stable' if stable else 'address'}")
    for name in HISTORIES
    for stable in (False, True)
    # Official releases refuse to leave indices behind when row ids are stable.
    if not (name == "deferred" and stable)
]


@pytest.mark.parametrize(("name", "stable"), CASES)
def test_versions_equal_those_of_official_releases(
    official: Official, tmp_path: Path, name: str, *, stable: bool
) -> None:
    steps = written(official, str(tmp_path / "table"), HISTORIES[name], stable=stable)
    assert differences(steps, official.release, stable=stable) == {}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", LATER_HISTORIES)
def test_versions_equal_those_of_the_latest_release(
    official_14: Official, tmp_path: Path, name: str, *, stable: bool
) -> None:
    steps = written(official_14, str(tmp_path / "table"), LATER_HISTORIES[name], stable=stable)
    assert differences(steps, official_14.release, stable=stable) == {}


def differences(steps: list[Step], release: str, *, stable: bool) -> dict[str, Any]:
    """Build each version from the one before, and return what differs, by version."""
    found = {}
    for number, step in enumerate(steps):
        ours = plain(_built(steps, number, stable=stable))
        theirs = plain(step.state)
        if number and release == "4.0.2":
            _forget_faults(step, steps[number - 1], ours, theirs)
        if difference := _difference(ours, theirs):
            kind = type(step.transaction.operation).__name__
            found[f"version {number + 1}: {kind}"] = difference
    return found


def _built(steps: list[Step], number: int, *, stable: bool) -> TableState:
    step = steps[number]
    manifest = step.state.manifest
    assert manifest.timestamp_ns is not None
    assert manifest.writer_version is not None
    options = BuildOptions(
        timestamp_ns=manifest.timestamp_ns,
        writer=manifest.writer_version,
        choices=VersionChoices(enable_stable_row_ids=stable, fragment_reuse=_fragment_reuse(step)),
    )
    transaction = _with_schema_metadata(step.transaction, step.state)
    if number == 0:
        return build.create(transaction, options)
    operation = transaction.operation
    restored = steps[operation.version - 1].state if isinstance(operation, ops.Restore) else None
    return build.next_state(transaction, steps[number - 1].state, options, restored=restored)


def _with_schema_metadata(transaction: Transaction, after: TableState) -> Transaction:
    # Official releases keep it in memory and do not record it.
    operation = transaction.operation
    if not isinstance(operation, ops.Overwrite):
        return transaction
    schema = replace(operation.schema, metadata=after.manifest.schema.metadata)
    return replace(transaction, operation=replace(operation, schema=schema))


def _fragment_reuse(step: Step) -> IndexMetadata | None:
    if not isinstance(step.transaction.operation, ops.Rewrite):
        return None
    return step.state.index_named(FRAGMENT_REUSE)


def _forget_faults(step: Step, before: Step, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Take out of both what release 4.0 is known to do otherwise; see decision 16."""
    match step.transaction.operation:
        case ops.Overwrite():
            first = (before.state.manifest.max_fragment_id or 0) + 1
            theirs["fragments"] = {first + i: f for i, f in theirs["fragments"].items()}
            theirs["order"] = [first + i for i in theirs["order"]]
            theirs["max_fragment_id"] = ours["max_fragment_id"]
        case ops.Restore():
            rewound = theirs["next_row_id"] <= before.state.manifest.next_row_id
            assert rewound
            theirs["next_row_id"] = before.state.manifest.next_row_id
        case ops.Update():
            _forget(ours, theirs, "created")
        case ops.Merge() | ops.DataReplacement():
            _forget(ours, theirs, "updated")
        case ops.UpdateConfig():
            theirs["schema"] = _with_key_marks(theirs["schema"])
        case ops.Rewrite():
            held = {i.uuid for i in before.state.indices if holds_addresses(i)}
            if before.state.manifest.has_stable_row_ids:
                for state in (ours, theirs):
                    state["indices"] = {k: v for k, v in state["indices"].items() if k not in held}
        case _:
            pass


def _forget(ours: dict[str, Any], theirs: dict[str, Any], key: str) -> None:
    for state in (ours, theirs):
        for fragment in state["fragments"].values():
            fragment.pop(key)


def _with_key_marks(schema: Schema) -> Schema:
    nothing = {f.id: MapUpdate(entries=FrozenMap()) for f in schema.walk()}
    return table_metadata.with_field_metadata(schema, nothing)


def plain(state: TableState) -> dict[str, Any]:
    """Return everything a version says, free of how it is encoded."""
    manifest = state.manifest
    return {
        "schema": manifest.schema,
        "schema metadata": dict(manifest.schema.metadata),
        "fragments": {f.id: _plain_fragment(f) for f in manifest.fragments},
        "order": [f.id for f in manifest.fragments],
        "indices": {i.uuid: _plain_index(i) for i in state.indices},
        "base paths": {b.id: b for b in manifest.base_paths},
        "index order": [i.uuid for i in state.indices],
        **{
            name: getattr(manifest, name)
            for name in (
                "version",
                "data_version",
                "timestamp_ns",
                "writer_version",
                "tag",
                "reader_feature_flags",
                "writer_feature_flags",
                "max_fragment_id",
                "transaction_file",
                "next_row_id",
                "config",
                "table_metadata",
                "branch",
                "unknown",
            )
        },
    }


def _plain_fragment(fragment: Fragment) -> dict[str, Any]:
    rows = fragment.physical_rows or 0
    return {
        "files": fragment.files,
        "deletion file": fragment.deletion_file,
        "rows": fragment.physical_rows,
        "ids": None if fragment.row_ids is None else row_id_values(fragment).tolist(),
        "created": _versions(fragment.created_at_versions, rows),
        "updated": _versions(fragment.last_updated_at_versions, rows),
        "unknown": fragment.unknown,
    }


def _versions(encoded: object, rows: int) -> list[int] | None:
    if not isinstance(encoded, bytes):
        return None
    return VersionSequence.decode(encoded, physical_rows=rows).values().tolist()


def _plain_index(index: IndexMetadata) -> tuple[IndexMetadata, list[int] | None]:
    covered = index.fragments()
    return replace(index, fragment_bitmap=b""), None if covered is None else list(covered)


def _difference(ours: Any, theirs: Any) -> Any:
    if ours == theirs:
        return None
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = sorted({*ours, *theirs}, key=str)
        found = {k: _difference(ours.get(k), theirs.get(k)) for k in keys}
        return {k: v for k, v in found.items() if v is not None}
    return f"{ours!r} instead of {theirs!r}"


@pytest.mark.parametrize("stable", [False, True])
def test_a_clone_equals_that_of_official_releases(
    official: Official, tmp_path: Path, *, stable: bool
) -> None:
    uri, copy = str(tmp_path / "table"), str(tmp_path / "copy")
    source = written(official, uri, ("bitmap", "delete rows", "config"), stable=stable)[-1]
    official.shallow_clone(uri, copy, source.state.manifest.version)
    assert _clone_difference(source.state, read(copy)[0]) is None


def test_a_branch_equals_that_of_official_releases(official: Official, tmp_path: Path) -> None:
    uri = str(tmp_path / "table")
    source = written(official, uri, ("bitmap", "delete rows"), stable=False)[-1]
    branch = official.branch(uri, "dev", source.state.manifest.version)
    assert _clone_difference(source.state, read(branch)[0]) is None


def _clone_difference(source: TableState, copied: Step) -> Any:
    manifest = copied.state.manifest
    assert manifest.timestamp_ns is not None
    assert manifest.writer_version is not None
    options = BuildOptions(timestamp_ns=manifest.timestamp_ns, writer=manifest.writer_version)
    base = manifest.base_paths[-1]
    ours = build.clone(copied.transaction, source, base.path, options)
    return _difference(plain(ours), plain(copied.state))
