"""Each kind of damage within one version is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyroaring import BitMap

from lancelake.format import deletion, rowids
from lancelake.format.fragment import DeletionFileType
from lancelake.format.rowids import Range
from lancelake.proto.table_pb2 import IndexSection, Manifest
from lancelake.proto.transaction_pb2 import Transaction
from tests.support.sound_tables import findings
from tests.support.table_surgery import (
    drop_inline_transaction,
    edit_indices,
    edit_manifest,
    edit_transaction,
    manifest_path,
    transaction_path,
)

Damage = Callable[[Path], object]
DAMAGE: list[tuple[str, Damage, str, str]] = []


def finds(code: str, severity: str = "error") -> Callable[[Damage], Damage]:
    """Register damage done to a table's folder, and what must be found."""

    def register(damage: Damage) -> Damage:
        DAMAGE.append((damage.__name__, damage, code, severity))
        return damage

    return register


def in_manifest(
    code: str, severity: str = "error"
) -> Callable[[Callable[[Manifest], None]], Callable[[Manifest], None]]:
    """Register damage done to the latest manifest, and what must be found."""

    def register(damage: Callable[[Manifest], None]) -> Callable[[Manifest], None]:
        def run(root: Path) -> object:
            return edit_manifest(root, damage)

        DAMAGE.append((damage.__name__, run, code, severity))
        return damage

    return register


def in_indices(
    code: str, severity: str = "error"
) -> Callable[[Callable[[IndexSection], None]], Callable[[IndexSection], None]]:
    """Register damage done to the index section, and what must be found."""

    def register(damage: Callable[[IndexSection], None]) -> Callable[[IndexSection], None]:
        DAMAGE.append((damage.__name__, lambda root: edit_indices(root, damage), code, severity))
        return damage

    return register


@in_manifest("flag-missing", "warning")
def unset_deletion_flag(m: Manifest) -> None:
    m.reader_feature_flags &= ~1
    m.writer_feature_flags &= ~1


@in_manifest("flag-missing", "warning")
def unset_config_flag(m: Manifest) -> None:
    m.writer_feature_flags &= ~8


@in_manifest("flag-missing", "warning")
def unset_row_id_flag(m: Manifest) -> None:
    m.reader_feature_flags &= ~2
    m.writer_feature_flags &= ~2


@in_manifest("flag-words-differ", "warning")
def unset_a_flag_for_readers_only(m: Manifest) -> None:
    m.reader_feature_flags &= ~1


@in_manifest("flag-idle", "info")
def set_the_flag_of_base_paths(m: Manifest) -> None:
    m.reader_feature_flags |= 16
    m.writer_feature_flags |= 16


@in_manifest("unknown-writer-flags", "warning")
def set_an_unknown_writer_flag(m: Manifest) -> None:
    m.writer_feature_flags |= 1 << 20


@in_manifest("version-unsupported")
def set_an_unknown_reader_flag(m: Manifest) -> None:
    m.reader_feature_flags |= 1 << 20


@in_manifest("base-id-twice")
def repeat_a_base_id(m: Manifest) -> None:
    for path in ("/a", "/b"):
        m.base_paths.add(id=3, path=path)


@in_manifest("base-path-unusable")
def give_a_base_a_strange_scheme(m: Manifest) -> None:
    m.base_paths.add(id=3, path="gopher://a/b")


@in_manifest("field-id-twice")
def repeat_a_field_id(m: Manifest) -> None:
    m.fields[1].id = m.fields[0].id


@in_manifest("field-id-negative")
def make_a_field_id_negative(m: Manifest) -> None:
    m.fields[1].id = -7


@in_manifest("manifest-damaged")
def name_a_parent_that_is_not_there(m: Manifest) -> None:
    m.fields[1].parent_id = 77


@in_manifest("column-name-dot")
def put_a_dot_into_a_column_name(m: Manifest) -> None:
    m.fields[1].name = "te.xt"


@in_manifest("column-name-twice")
def repeat_a_column_name(m: Manifest) -> None:
    m.fields[1].name = "id"


@in_manifest("field-name-twice", "warning")
def repeat_a_member_name(m: Manifest) -> None:
    m.fields[4].name = m.fields[3].name


@in_manifest("field-name-empty", "warning")
def empty_a_name(m: Manifest) -> None:
    m.fields[1].name = ""


@in_manifest("type-unknown")
def make_a_type_unknown(m: Manifest) -> None:
    m.fields[1].logical_type = "quaternion"


@in_manifest("primary-key", "warning")
def make_a_nullable_column_the_key(m: Manifest) -> None:
    m.fields[1].unenforced_primary_key = True


@in_manifest("fragment-damaged")
def make_a_fragment_too_large(m: Manifest) -> None:
    m.fragments[1].physical_rows = 1 << 40


@in_manifest("fragment-id-twice")
def repeat_a_fragment_id(m: Manifest) -> None:
    m.fragments[1].id = 0


@in_manifest("fragment-id-range")
def lower_the_highest_fragment_id(m: Manifest) -> None:
    m.max_fragment_id = 1


@in_manifest("fragment-order", "info")
def reverse_the_fragments(m: Manifest) -> None:
    swapped = list(m.fragments)[::-1]
    del m.fragments[:]
    m.fragments.extend(swapped)


@in_manifest("row-count-missing", "warning")
def forget_a_row_count(m: Manifest) -> None:
    m.fragments[0].physical_rows = 0


@in_manifest("file-size-missing", "info")
def forget_a_file_size(m: Manifest) -> None:
    m.fragments[0].files[0].file_size_bytes = 0


@in_manifest("file-escapes")
def point_a_data_file_outside(m: Manifest) -> None:
    m.fragments[0].files[0].path = "../../etc/passwd"


@in_manifest("data-file-missing")
def point_a_data_file_to_nowhere(m: Manifest) -> None:
    m.fragments[0].files[0].path = "nothing.lance"


@in_manifest("base-undeclared")
def put_a_data_file_on_an_undeclared_base(m: Manifest) -> None:
    m.fragments[0].files[0].base_id = 9


@in_manifest("data-file-size")
def change_a_data_file_size(m: Manifest) -> None:
    m.fragments[0].files[0].file_size_bytes += 1


@in_manifest("file-columns")
def drop_a_column_index(m: Manifest) -> None:
    del m.fragments[0].files[0].column_indices[-1]


@in_manifest("file-column-twice")
def share_a_column_index(m: Manifest) -> None:
    m.fragments[0].files[0].column_indices[1] = 0


@in_manifest("file-field-unknown")
def list_a_strange_field(m: Manifest) -> None:
    m.fragments[0].files[0].fields[0] = -5


@in_manifest("file-dead", "info")
def leave_a_file_without_live_columns(m: Manifest) -> None:
    file = m.fragments[0].files.add()
    file.CopyFrom(m.fragments[1].files[0])
    file.fields[:] = [-2] * len(file.fields)


@in_manifest("file-version-unknown")
def make_a_file_version_unknown(m: Manifest) -> None:
    m.fragments[0].files[0].file_major_version = 7


@in_manifest("file-version-mixed")
def mix_file_versions(m: Manifest) -> None:
    m.fragments[0].files[0].file_minor_version = 0


@in_manifest("field-in-two-files")
def supply_a_field_twice(m: Manifest) -> None:
    m.fragments[0].files.add().CopyFrom(m.fragments[1].files[0])


@in_manifest("deletion-count")
def change_a_deletion_count(m: Manifest) -> None:
    m.fragments[0].deletion_file.num_deleted_rows = 7


@in_manifest("deletion-file-missing")
def name_a_deletion_file_that_is_not_there(m: Manifest) -> None:
    m.fragments[0].deletion_file.id += 1


@in_manifest("base-undeclared")
def put_a_deletion_file_on_an_undeclared_base(m: Manifest) -> None:
    m.fragments[0].deletion_file.base_id = 9


@in_manifest("deletion-range")
def shrink_a_fragment_below_its_deletions(m: Manifest) -> None:
    m.fragments[0].physical_rows = 2


@in_manifest("manifest-damaged")
def drop_row_ids(m: Manifest) -> None:
    m.fragments[0].ClearField("inline_row_ids")


@in_manifest("row-ids-damaged")
def garble_row_ids(m: Manifest) -> None:
    m.fragments[0].inline_row_ids = b"\xff\xff"


@in_manifest("row-ids-length")
def shorten_row_ids(m: Manifest) -> None:
    m.fragments[0].inline_row_ids = rowids.encode_row_ids((Range(start=0, end=9),))


@in_manifest("row-ids-twice")
def repeat_row_ids_in_another_fragment(m: Manifest) -> None:
    m.fragments[1].inline_row_ids = m.fragments[0].inline_row_ids


@in_manifest("row-ids-twice")
def repeat_row_ids_in_a_fragment(m: Manifest) -> None:
    halves = (Range(start=50, end=55), Range(start=50, end=55))
    m.next_row_id = 100
    m.fragments[1].inline_row_ids = rowids.encode_row_ids(halves)


@in_manifest("row-ids-range")
def lower_the_next_row_id(m: Manifest) -> None:
    m.next_row_id = 5


@in_manifest("row-versions-damaged")
def garble_row_versions(m: Manifest) -> None:
    m.fragments[0].inline_created_at_versions = b"\xff\xff"


@in_manifest("row-versions-length")
def lengthen_row_versions(m: Manifest) -> None:
    m.fragments[0].inline_created_at_versions = rowids.encode_versions(((11, 1),))


@in_manifest("row-versions-length", "warning")
def shorten_row_versions(m: Manifest) -> None:
    m.fragments[0].inline_created_at_versions = rowids.encode_versions(((9, 1),))


@in_manifest("row-versions-range")
def date_rows_in_the_future(m: Manifest) -> None:
    m.fragments[0].inline_last_updated_at_versions = rowids.encode_versions(((10, 99),))


@in_manifest("manifest-damaged")
def move_the_index_section(m: Manifest) -> None:
    m.index_section += 3


@in_manifest("manifest-name")
def rename_the_version(m: Manifest) -> None:
    m.version = 7


@in_indices("index-field-gone")
def give_an_index_a_field_that_is_gone(s: IndexSection) -> None:
    s.indices[0].fields[0] = 99


@in_indices("index-version")
def date_an_index_in_the_future(s: IndexSection) -> None:
    s.indices[0].dataset_version = 99


@in_indices("index-bitmap-damaged")
def garble_a_fragment_bitmap(s: IndexSection) -> None:
    s.indices[0].fragment_bitmap = b"\x00\x01"


@in_indices("index-bitmap-stale", "info")
def cover_a_fragment_that_is_gone(s: IndexSection) -> None:
    s.indices[0].fragment_bitmap = BitMap([0, 77]).serialize()


@in_indices("index-uuid-twice")
def repeat_an_index_uuid(s: IndexSection) -> None:
    s.indices.add().CopyFrom(s.indices[0])


@in_indices("index-overlap")
def let_two_segments_cover_a_fragment(s: IndexSection) -> None:
    s.indices.add().CopyFrom(s.indices[0])


@in_indices("index-kind-unknown", "info")
def make_an_index_kind_unknown(s: IndexSection) -> None:
    s.indices[0].index_details.type_url = "/x.HologramIndexDetails"


@in_indices("index-details-damaged")
def garble_index_details(s: IndexSection) -> None:
    s.indices[0].index_details.type_url = "/x.VectorIndexDetails"
    s.indices[0].index_details.value = b"\xff\xff"


@in_indices("index-file-missing")
def name_an_index_file_that_is_not_there(s: IndexSection) -> None:
    s.indices[0].files[0].path = "nothing.lance"


@in_indices("file-escapes")
def point_an_index_file_outside(s: IndexSection) -> None:
    s.indices[0].files[0].path = "../../x"


@in_indices("index-file-size")
def change_an_index_file_size(s: IndexSection) -> None:
    s.indices[0].files[0].size_bytes += 1


@in_indices("index-file-missing")
def name_an_index_folder_that_is_not_there(s: IndexSection) -> None:
    s.indices[0].uuid.uuid = b"0123456789abcdef"
    del s.indices[0].files[:]


@in_indices("base-undeclared")
def put_an_index_on_an_undeclared_base(s: IndexSection) -> None:
    s.indices[0].base_id = 9


@in_indices("index-section-damaged")
def cut_an_index_uuid(s: IndexSection) -> None:
    s.indices[0].uuid.uuid = b"short"


@finds("data-file-missing")
def remove_a_data_file(root: Path) -> None:
    next((root / "data").glob("*.lance")).unlink()


@finds("data-file-size")
def cut_a_data_file(root: Path) -> None:
    path = next((root / "data").glob("*.lance"))
    path.write_bytes(path.read_bytes()[:-10])


@finds("deletion-file-missing")
def remove_a_deletion_file(root: Path) -> None:
    next((root / "_deletions").iterdir()).unlink()


@finds("deletion-file-damaged")
def garble_a_deletion_file(root: Path) -> None:
    next((root / "_deletions").iterdir()).write_bytes(b"garbage")


@finds("deletion-count")
def add_rows_to_a_deletion_file(root: Path) -> None:
    _delete(root, BitMap(range(5)))


@finds("deletion-range")
def delete_a_row_that_is_not_there(root: Path) -> None:
    _delete(root, BitMap([1000]))


@finds("fragment-empty", "warning")
def delete_every_row(root: Path) -> None:
    _delete(root, BitMap(range(10)))


@finds("index-file-missing")
def remove_an_index_file(root: Path) -> None:
    next((root / "_indices").glob("*/*")).unlink()


@finds("manifest-damaged")
def cut_the_manifest(root: Path) -> None:
    path = manifest_path(root)
    path.write_bytes(path.read_bytes()[:-20])


@finds("manifest-damaged")
def empty_the_manifest(root: Path) -> None:
    manifest_path(root).write_bytes(b"")


@finds("transaction-missing", "warning")
def remove_the_transaction(root: Path) -> None:
    drop_inline_transaction(root)
    transaction_path(root).unlink()


@finds("transaction-file-missing", "info")
def remove_the_copy_of_the_transaction(root: Path) -> None:
    transaction_path(root).unlink()


@finds("transaction-damaged")
def garble_the_transaction(root: Path) -> None:
    drop_inline_transaction(root)
    transaction_path(root).write_bytes(b"\xff\xff\xff")


@finds("operation-unknown", "info")
def make_the_operation_unknown(root: Path) -> None:
    def change(transaction: Transaction) -> None:
        transaction.ClearField("update_config")
        # Field 400, an empty message.
        transaction.MergeFromString(b"\x82\x19\x00")

    edit_transaction(root, change)


@finds("transaction-order")
def let_the_transaction_read_its_own_version(root: Path) -> None:
    def change(transaction: Transaction) -> None:
        transaction.read_version = 5

    edit_transaction(root, change)


@finds("hint-ahead", "warning")
def hint_at_a_later_version(root: Path) -> None:
    (root / "_versions" / "latest_version_hint.json").write_text(json.dumps({"version": 50}))


@finds("hint-damaged", "info")
def garble_the_hint(root: Path) -> None:
    (root / "_versions" / "latest_version_hint.json").write_text("{")


def _delete(root: Path, rows: BitMap) -> None:
    path = next((root / "_deletions").iterdir())
    path.write_bytes(deletion.encode(rows, DeletionFileType.ARROW_ARRAY))


@pytest.mark.parametrize(
    ("damage", "code", "severity"), [d[1:] for d in DAMAGE], ids=[d[0] for d in DAMAGE]
)
def test_finds_what_it_did_to(damage: Damage, code: str, severity: str, table: Path) -> None:
    damage(table)
    found = {(f.code, f.severity.value) for f in findings(table) if f.branch is None}
    assert (code, severity) in found


@pytest.mark.parametrize("damage", [d[1] for d in DAMAGE], ids=[d[0] for d in DAMAGE])
def test_no_check_breaks_down_when_asked_to(damage: Damage, table: Path) -> None:
    damage(table)
    assert "check-failed" not in {f.code for f in findings(table, data=True, versions="all")}
