"""An inconsistent version raises an error."""

from __future__ import annotations

from pathlib import Path

import pytest

import lancelake.pylance as lance
from lancelake.errors import CorruptTableError
from lancelake.proto.table_pb2 import Manifest
from tests.support.table_surgery import edit_manifest


def test_a_sound_table_is_valid(sound: Path) -> None:
    lance.dataset(str(sound)).validate()


def test_a_missing_file_is_raised(table: Path) -> None:
    next((table / "_indices").glob("*/*")).unlink()
    with pytest.raises(CorruptTableError, match="id_idx"):
        lance.dataset(str(table)).validate()


def test_a_wrong_row_count_is_raised(table: Path) -> None:
    def change(manifest: Manifest) -> None:
        fragment = manifest.fragments[1]
        fragment.physical_rows = 9
        fragment.ClearField("inline_row_ids")
        for other in manifest.fragments:
            other.ClearField("inline_row_ids")
            other.ClearField("inline_created_at_versions")
            other.ClearField("inline_last_updated_at_versions")
        manifest.reader_feature_flags &= ~2
        manifest.writer_feature_flags &= ~2

    edit_manifest(table, change)
    with pytest.raises(CorruptTableError, match="holds 10 rows of fragment 1"):
        lance.dataset(str(table)).validate()


def test_other_versions_do_not_matter(table: Path) -> None:
    next((table / "_indices").glob("*/*")).unlink()
    lance.dataset(str(table), 3).validate()
