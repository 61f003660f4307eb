"""Index files with entries that contradict each other are reported as damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lancelake.pylance as lance
from lancelake.errors import CorruptTableError, DamagedIndexError, InvalidRequestError
from lancelake.index.text.parameters import TextParameters
from lancelake.maintenance.check.run import check
from lancelake.pylance.query import PhraseQuery
from lancelake.storage.location import Location
from tests.hostile import indexed_table, mutants
from tests.hostile.document_cases import rewritten

NEAREST = {"column": "pq", "q": [0.5] * 8, "k": 3}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return indexed_table.build(tmp_path_factory.mktemp("damaged"))


def _file(table: Path, name: str) -> str:
    (found,) = table.glob(f"_indices/*/{name}")
    return str(found.relative_to(table))


def _refreshed(table: Path) -> None:
    opened = lance.dataset(table, confine_to=[])
    opened.insert(indexed_table.rows(1_000, 1_010))
    opened.optimize.optimize_indices()


def test_a_refresh_reports_tokens_that_are_out_of_range(original: Path) -> None:
    rewritten(_file(original, "part_0_tokens.lance"), values={"_token_id": 1 << 31})(original)
    with pytest.raises(CorruptTableError, match="index 'text_idx' cannot be read"):
        _refreshed(original)


@pytest.mark.parametrize("act", ["compact_files", "optimize_indices"])
@pytest.mark.parametrize(
    ("file", "value"), [("part_0_tokens.lance", "_token_id"), ("part_0_docs.lance", None)]
)
def test_a_damaged_text_index_is_reported(
    tmp_path: Path, act: str, file: str, value: str | None
) -> None:
    table = mutants.build_indexed(tmp_path / "t.lance", "text")
    damaged = table / _file(table, file)
    if value is None:
        damaged.write_bytes(damaged.read_bytes()[:-100] + bytes(100))
    else:
        rewritten(_file(table, file), values={value: 1 << 31})(table)
    with pytest.raises(CorruptTableError, match="index 'text_idx' cannot be read"):
        getattr(lance.dataset(table).optimize, act)()
    codes = [finding.code for finding in check(Location.parse(table), data=True)]
    assert "index-file-damaged" in codes


def test_lists_whose_items_end_before_they_start_are_reported(tmp_path: Path) -> None:
    table = mutants.build_indexed(tmp_path / "t.lance", "text")
    damaged = table / _file(table, "part_0_invert.lance")
    data = bytearray(damaged.read_bytes())
    # The offsets of the first column, of eight bytes each.
    data[8 * 20 + 1] ^= 0x40
    damaged.write_bytes(data)
    for act in ("compact_files", "optimize_indices"):
        with pytest.raises(CorruptTableError, match="the offsets of a page are not in order"):
            getattr(lance.dataset(table).optimize, act)()


def test_a_refresh_reports_a_filter_size_beyond_reason(tmp_path: Path) -> None:
    table = indexed_table.build(tmp_path, columns=("hash",))
    changes = {"bloomfilter_item": str((1 << 63) - 1)}
    rewritten(_file(table, "bloomfilter.lance"), metadata=changes)(table)
    with pytest.raises(CorruptTableError, match="claims 9223372036854775807 rows"):
        _refreshed(table)


@pytest.mark.parametrize("number", ["18446744073709551615", "-1", "x", "9" * 5_000])
def test_a_buffer_that_a_file_cannot_have_is_reported(
    tmp_path_factory: pytest.TempPathFactory, number: str
) -> None:
    table = indexed_table.build(tmp_path_factory.mktemp("buffer"), columns=("tags",))
    (file,) = table.glob("_indices/*/bitmap_page_lookup.lance")
    changes = {"lance:label_list_nulls": number}
    rewritten(str(file.relative_to(table)), metadata=changes)(table)
    with pytest.raises(CorruptTableError, match="global buffer"):
        lance.dataset(table).to_table(filter="array_has(tags, 'blue')")


def test_a_word_length_beyond_reason_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="cannot have"):
        TextParameters(max_token_length=1 << 64)


@pytest.mark.parametrize(
    ("column", "file", "key", "search"),
    [
        ("text", "metadata.lance", "partitions", {"full_text_query": "red"}),
        ("pq", "auxiliary.idx", "storage_metadata", {"nearest": NEAREST}),
    ],
)
def test_deeply_nested_settings_are_reported(
    tmp_path: Path, column: str, file: str, key: str, search: dict[str, Any]
) -> None:
    table = indexed_table.build(tmp_path, columns=(column,))
    rewritten(_file(table, file), metadata={key: "[" * 100_000})(table)
    with pytest.raises(CorruptTableError):
        lance.dataset(table).to_table(columns=["id"], **search)


def test_a_list_of_more_documents_than_there_are_is_reported(tmp_path: Path) -> None:
    table = indexed_table.build(tmp_path, columns=("text",))
    rewritten(_file(table, "part_0_invert.lance"), values={"_length": 1 << 31})(table)
    with pytest.raises(CorruptTableError, match="more documents than exist"):
        _refreshed(table)


@pytest.mark.parametrize("block", [b"", b"\0" * 4])
def test_a_phrase_search_reports_damaged_positions(tmp_path: Path, block: bytes) -> None:
    # So many positions in one document are stored in blocks.
    rows = pa.table({"id": [1], "text": ["alpha beta " * 150]})
    table = lance.write_dataset(rows, tmp_path / "t.lance")
    table.create_scalar_index("text", "INVERTED", with_position=True)
    damaged = {"_position": [[b"\0" * 4, block]]}
    rewritten(_file(tmp_path / "t.lance", "part_0_invert.lance"), values=damaged)(
        tmp_path / "t.lance"
    )
    opened = lance.dataset(tmp_path / "t.lance")
    with pytest.raises(DamagedIndexError, match="index 'text_idx' cannot be searched"):
        opened.search(PhraseQuery("alpha beta", "text"), columns=["id"])


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"dim": -1, "bounds": {"start": 0.0, "end": 1.0}}, "codes of -1 values, vectors have 8"),
        (
            {"dim": 8, "bounds": {"start": 1e300, "end": 1.0}},
            "codes have the invalid bounds 1e.300 and",
        ),
    ],
)
def test_settings_of_scalar_codes_that_cannot_be_are_reported(
    tmp_path: Path, settings: dict[str, Any], problem: str
) -> None:
    table = indexed_table.build(tmp_path, columns=("graph",))
    changes = {"storage_metadata": json.dumps([json.dumps({**settings, "num_bits": 8})])}
    rewritten(_file(table, "auxiliary.idx"), metadata=changes)(table)
    with pytest.raises(CorruptTableError, match=problem):
        lance.dataset(table).to_table(nearest={**NEAREST, "column": "graph"})
    with pytest.raises(CorruptTableError, match=problem):
        _refreshed(table)
