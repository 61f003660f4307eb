from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.pylance._dataset.notebook import NotebookList
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


def test_lists_of_versions_fragments_and_indices_are_tables(dataset: LanceDataset) -> None:
    versions = _html(dataset.versions())
    numbers = re.findall(r"<tr><td style='text-align:left'>(\d+)</td>", versions)
    assert numbers == ["3", "2", "1"]
    assert "<td style='text-align:left'>990</td>" in _html(dataset.get_fragments())
    assert "id_idx" in _html(dataset.describe_indices())
    with pytest.warns(DeprecationWarning):
        assert "id_idx" in _html(dataset.list_indices())


def test_the_time_of_a_version_is_shown_in_full(dataset: LanceDataset) -> None:
    versions = dataset.versions()
    for version in versions:
        assert f">{version['timestamp'].isoformat(' ')}<" in _html(versions)


def test_a_long_list_is_cut_in_html_only() -> None:
    numbers = NotebookList(range(1200), ("number",), lambda number: (number,))
    html = numbers._repr_html_()
    assert (html.count("<tr>"), "… 1,100 more" in html) == (1 + 100 + 1, True)
    assert numbers == list(range(1200))


def test_lists_can_be_copied_and_sent(dataset: LanceDataset) -> None:
    versions = dataset.versions()
    for other in (copy.copy(versions), pickle.loads(pickle.dumps(versions))):
        assert other == versions
        assert _html(other) == _html(versions)


def _html(shown: Any) -> str:
    return str(shown._repr_html_())
