"""Limits of each release and data file version, found by trying, as predicates."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

FILE_VERSIONS = ("legacy", "2.0", "2.1", "2.2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A writing release and the data file version it is asked for.

    `misreads_when_filtered` admits packed structs and fixed-size lists of structs: official
    releases read them right in a plain scan, and wrongly under a filter.
    """

    release: str
    file_version: str
    misreads_when_filtered: bool = True

    @property
    def name(self) -> str:
        """Return a short name for test ids."""
        return f"{self.release}-{self.file_version}"

    @property
    def is_legacy(self) -> bool:
        """True for data files 0.1."""
        return self.file_version == "legacy"

    @property
    def _is_early_structural(self) -> bool:
        return self.release == "4.0.2" and self.file_version in {"2.1", "2.2"}

    @property
    def holds_null_structs(self) -> bool:
        """False for 2.0: release 4.0.2 writes such a struct as valid, 14.0.2 refuses it."""
        return self.file_version != "2.0"

    @property
    def holds_maps(self) -> bool:
        """True from 2.2 on."""
        return self.file_version == "2.2"

    @property
    def holds_structs_in_fixed_size_lists(self) -> bool:
        """True for 2.2 in 4.0.2, at top level; 14.0.2 cannot read them beside other columns."""
        is_readable = self.file_version == "2.2" and self.release == "4.0.2"
        return is_readable and self.misreads_when_filtered

    @property
    def holds_packed_structs(self) -> bool:
        """True unless filters are to be tried."""
        return self.misreads_when_filtered

    @property
    def holds_offset_zones(self) -> bool:
        """False for 4.0.2, which panics on zones like +05:30."""
        return self.release != "4.0.2"

    @property
    def holds_json(self) -> bool:
        """False for legacy files: 4.0.2 loses the dictionaries of other columns beside JSON."""
        return not self.is_legacy

    @property
    def holds_nested_json(self) -> bool:
        """False for 4.0.2, which converts top-level JSON only."""
        return self.holds_json and self.release != "4.0.2"

    @property
    def holds_nested_null_type(self) -> bool:
        """False for 4.0.2 from 2.1 on: reading a null-typed list item or member fails."""
        return not self._is_early_structural

    @property
    def holds_wide_nested_fixed_size_lists(self) -> bool:
        """False for 4.0.2 from 2.1 on: it panics when a row of them has 256 bytes or more."""
        return not self._is_early_structural

    @property
    def holds_null_items_in_fixed_size_lists(self) -> bool:
        """False for 4.0.2 from 2.1 on: a page of only null items is written as null lists."""
        return not self._is_early_structural

    @property
    def holds_nested_dictionaries(self) -> bool:
        """False for 4.0.2 from 2.1 on: it panics on some dictionaries inside lists."""
        return not self._is_early_structural

    @property
    def holds_any_list_item(self) -> bool:
        """False for legacy files, whose reader wants the item to be `item` and nullable."""
        return not self.is_legacy

    @property
    def holds_empty_structs(self) -> bool:
        """False for legacy files, whose reader fails on a struct without members."""
        return not self.is_legacy

    @property
    def appends_column_subsets(self) -> bool:
        """False for legacy tables: each fragment must hold every field."""
        return not self.is_legacy

    @property
    def merges_column_subsets(self) -> bool:
        """False for legacy: 4.0.2 tombstones in place, which makes a legacy file unreadable."""
        return not self.is_legacy

    @property
    def adds_null_columns(self) -> bool:
        """False for legacy: refused."""
        return not self.is_legacy

    @property
    def splits_files(self) -> bool:
        """False for 4.0.2 from 2.1 on: batches cut at max_rows_per_file corrupt nested data."""
        return not self._is_early_structural

    @property
    def restores_dictionaries(self) -> bool:
        """False for legacy: the dictionary values are not carried over, the commit is refused."""
        return not self.is_legacy

    @property
    def dictionary_values(self) -> tuple[pa.DataType, ...]:
        """Return the value types that dictionary columns may have."""
        texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
        numbers = (pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64())
        # The 0.1 writer has no page layout for these inside the manifest.
        rest = () if self.is_legacy else (pa.float32(), pa.float64(), pa.bool_())
        return (*texts, *numbers, *rest)
