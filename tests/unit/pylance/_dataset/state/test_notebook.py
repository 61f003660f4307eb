from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance.dataset import LanceDataset


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    rows = pa.table({"id": range(1000), "<script>alert(1)</script>": ["x"] * 1000})
    made = lance.write_dataset(rows, tmp_path / "t.lance")
    made.tags.create("release", 1)
    made.create_scalar_index("id", "BTREE")
    made.delete("id < 10")
    return lance.dataset(tmp_path / "t.lance")


def test_a_dataset_shows_rows_columns_and_indices(dataset: LanceDataset) -> None:
    html = dataset._repr_html_()
    for text in ("990", "id_idx", "release", "int64"):
        assert text in html


def test_names_are_text_in_html(dataset: LanceDataset) -> None:
    html = dataset._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_a_fragment_shows_its_rows(dataset: LanceDataset) -> None:
    html = dataset.get_fragments()[0]._repr_html_()
    assert "<td style='text-align:left'>990</td>" in html


def test_refs_are_shown(dataset: LanceDataset) -> None:
    assert repr(dataset.tags) == "Tags(release=1)"
    assert "release" in dataset.tags._repr_html_()
    dataset.create_branch("trial")
    assert repr(dataset.branches) == "Branches(trial)"
    assert "trial" in dataset.branches._repr_html_()
