"""Manifests of early releases are told from later ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.lance import manifest_needs_migration
from lancelake.table.config import lacks_facts
from lancelake.txn.options import TableState


@pytest.fixture
def table(tmp_path: Path) -> lance.LanceDataset:
    made = lance.write_dataset(pa.table({"a": range(9)}), tmp_path / "t")
    made.create_scalar_index("a", "BTREE")
    made.delete("a = 1")
    return made


def _changed(table: lance.LanceDataset, **changes: object) -> TableState:
    state = table._snapshot.state
    (fragment,) = state.manifest.fragments
    manifest = replace(state.manifest, fragments=(replace(fragment, **changes),))
    return replace(state, manifest=manifest)


def test_nothing_is_missing_in_a_new_manifest(table: lance.LanceDataset) -> None:
    assert not manifest_needs_migration(table)


def test_a_fragment_without_its_number_of_rows(table: lance.LanceDataset) -> None:
    assert lacks_facts(_changed(table, physical_rows=None))


def test_a_deletion_file_without_its_number_of_rows(table: lance.LanceDataset) -> None:
    (fragment,) = table._snapshot.manifest.fragments
    assert fragment.deletion_file is not None
    uncounted = replace(fragment.deletion_file, num_deleted_rows=None)
    assert lacks_facts(_changed(table, deletion_file=uncounted))
