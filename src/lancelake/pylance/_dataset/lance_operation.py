"""Operations of user-assembled transactions: one class for each."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from lancelake.core.values.metadata import Operation
from lancelake.core.values.metadata import RewrittenIndex as RewrittenIndexEntry
from lancelake.pylance._dataset.arguments import DatasetBasePath
from lancelake.pylance._dataset.index_values import Index
from lancelake.pylance._values.fragment_metadata import DataFile, FragmentMetadata
from lancelake.pylance.schema import LanceSchema


def _ensure_fragments(fragments: object) -> None:
    if not isinstance(fragments, list):
        raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragments)}")
    for fragment in fragments:
        if not isinstance(fragment, FragmentMetadata):
            raise TypeError(f"fragments must be list[FragmentMetadata], got {type(fragment)}")


class LanceOperation:
    """Operations that `LanceDataset.commit` records.

    They are for programs that write data files themselves, on several machines for example, and
    commit them together.

    Examples:
        >>> from lancelake.pylance.fragment import write_fragments
        >>> fragments = write_fragments(ds.head(1), ds)
        >>> append = lance.LanceOperation.Append(fragments)
        >>> lance.LanceDataset.commit(ds, append, read_version=ds.version).count_rows()
        4
    """

    @dataclass(repr=False, eq=False)
    class BaseOperation:
        """Base of all operations; also represents operations without a class of their own."""

        # The operation as read from a table, including fields without a public attribute.
        _source: Operation | None = field(default=None, kw_only=True, repr=False, compare=False)

    @dataclass
    class Overwrite(BaseOperation):
        """Create the table, or replace its schema and all its rows.

        Attributes:
            new_schema: The schema; fields of an Arrow schema get new ids.
            fragments: The fragments, which get new ids.
            initial_bases: Base paths to register if the table is created.

        Examples:
            >>> fragment = lance.LanceFragment.create("new.lance", {"id": [1]})
            >>> schema = pa.schema([("id", pa.int64())])
            >>> overwrite = lance.LanceOperation.Overwrite(schema, [fragment])
            >>> lance.LanceDataset.commit("new.lance", overwrite).count_rows()
            1
        """

        new_schema: LanceSchema | pa.Schema
        fragments: list[FragmentMetadata]
        initial_bases: list[DatasetBasePath] | None = None

        def __post_init__(self) -> None:
            """Assign ids to the fields of an Arrow schema."""
            if isinstance(self.new_schema, pa.Schema):
                self.new_schema = LanceSchema.from_pyarrow(self.new_schema)
            _ensure_fragments(self.fragments)

    @dataclass
    class Append(BaseOperation):
        """Append rows.

        Attributes:
            fragments: The fragments, which get new ids.

        Examples:
            >>> fragment = lance.LanceFragment.create("people.lance", ds.head(1))
            >>> append = lance.LanceOperation.Append([fragment])
            >>> lance.LanceDataset.commit(ds, append, read_version=1).count_rows()
            4
        """

        fragments: list[FragmentMetadata]

        def __post_init__(self) -> None:
            """Validate the fragments."""
            _ensure_fragments(self.fragments)

    @dataclass
    class Delete(BaseOperation):
        """Delete rows.

        Attributes:
            updated_fragments: Fragments with a new deletion file.
            deleted_fragment_ids: Fragments without a row left.
            predicate: The condition, for the record.

        Examples:
            >>> delete = lance.LanceOperation.Delete([], [0], "true")
            >>> lance.LanceDataset.commit(ds, delete, read_version=1).count_rows()
            0
        """

        updated_fragments: list[FragmentMetadata]
        deleted_fragment_ids: Iterable[int]
        predicate: str

        def __post_init__(self) -> None:
            """Validate the fragments."""
            _ensure_fragments(self.updated_fragments)

    @dataclass
    class Update(BaseOperation):
        """Update rows: by moving them to new fragments, or by rewriting columns in place.

        Attributes:
            removed_fragment_ids: Fragments without a row left.
            updated_fragments: Fragments with a new deletion file, or with new files of some
                columns.
            new_fragments: Fragments with the moved rows.
            fields_modified: Fields that changed in `updated_fragments`; indices on them no longer
                cover these fragments.
            fields_for_preserving_frag_bitmap: New fragments stay covered by indices on none of
                these.
            update_mode: `rewrite_rows` or `rewrite_columns`.
            updated_fragment_offsets: The changed rows by fragment id, as portable Roaring bitmaps.

        Examples:
            >>> values = {"id": [1], "score": [9.0]}
            >>> fragment, fields = ds.get_fragment(0).update_columns(values, "id")
            >>> update = lance.LanceOperation.Update(
            ...     updated_fragments=[fragment],
            ...     fields_modified=fields,
            ...     update_mode="rewrite_columns",
            ... )
            >>> lance.LanceDataset.commit(ds, update, read_version=1).count_rows("score = 9")
            1
        """

        removed_fragment_ids: list[int] = field(default_factory=list)
        updated_fragments: list[FragmentMetadata] = field(default_factory=list)
        new_fragments: list[FragmentMetadata] = field(default_factory=list)
        fields_modified: list[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: list[int] = field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: dict[int, bytes] | None = None

        def __post_init__(self) -> None:
            """Validate the fragments."""
            _ensure_fragments(self.updated_fragments)
            _ensure_fragments(self.new_fragments)

    @dataclass
    class Merge(BaseOperation):
        """Add columns.

        Attributes:
            fragments: All fragments of the table, with the files of the new columns.
            schema: The new schema of the table.
            preserves_nullability: Rows appended in the meantime may lack the new columns.

        Examples:
            >>> fragment, schema = ds.get_fragment(0).merge_columns({"double": "score * 2"})
            >>> merge = lance.LanceOperation.Merge([fragment], schema)
            >>> "double" in lance.LanceDataset.commit(ds, merge, read_version=1).schema.names
            True
        """

        fragments: list[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

        def __post_init__(self) -> None:
            """Assign ids to the fields of an Arrow schema, independent of the table's ids."""
            if isinstance(self.schema, pa.Schema):
                msg = "a pyarrow.Schema has no field ids; pass a LanceSchema to Merge"
                warnings.warn(msg, DeprecationWarning, stacklevel=3)
                self.schema = LanceSchema.from_pyarrow(self.schema)
            _ensure_fragments(self.fragments)

    @dataclass
    class Restore(BaseOperation):
        """Restore an old version as the newest.

        Attributes:
            version: The version.

        Examples:
            >>> ds.truncate_table()
            >>> lance.LanceDataset.commit(ds, lance.LanceOperation.Restore(1)).count_rows()
            3
        """

        version: int

    @dataclass
    class Clone(BaseOperation):
        """Start a table or a branch from a version of a table."""

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None

    @dataclass
    class RewriteGroup:
        """Fragments that were read together, and those written from them."""

        old_fragments: list[FragmentMetadata]
        new_fragments: list[FragmentMetadata]
        _unknown: bytes = field(default=b"", kw_only=True, repr=False, compare=False)

    @dataclass
    class RewrittenIndex:
        """An index segment that replaces another."""

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int
        _source: RewrittenIndexEntry | None = field(
            default=None, kw_only=True, repr=False, compare=False
        )

    @dataclass
    class Rewrite(BaseOperation):
        """Rewrite the same rows to other files."""

        groups: Iterable[LanceOperation.RewriteGroup]
        rewritten_indices: Iterable[LanceOperation.RewrittenIndex]

        def __post_init__(self) -> None:
            """Validate the fragments."""
            self.groups = list(self.groups)
            for group in self.groups:
                _ensure_fragments([*group.old_fragments, *group.new_fragments])

    @dataclass
    class CreateIndex(BaseOperation):
        """Add and remove index segments."""

        new_indices: list[Index]
        removed_indices: list[Index]

    @dataclass
    class DataReplacementGroup:
        """The file that replaces another one with the same columns in one fragment."""

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Replace files with files of the same columns."""

        replacements: list[LanceOperation.DataReplacementGroup]

    @dataclass
    class DataOverlayFile:
        """Values for some cells of a fragment, overlaid on its files.

        `offsets` are the rows that have a value: one set for all fields, or one per field.
        """

        data_file: DataFile
        offsets: Iterable[int] | list[Iterable[int]]
        committed_version: int | None = None

    @dataclass
    class DataOverlayGroup:
        """Overlays of one fragment; later ones take precedence."""

        fragment_id: int
        overlays: list[LanceOperation.DataOverlayFile]

    @dataclass
    class DataOverlay(BaseOperation):
        """Overlay values on cells without rewriting files."""

        groups: list[LanceOperation.DataOverlayGroup]

    @dataclass
    class Project(BaseOperation):
        """Drop, rename or reorder columns.

        Attributes:
            schema: The new schema of the table.
            preserves_nullability: The nullability of no column changed.
        """

        schema: LanceSchema
        preserves_nullability: bool = False

    @dataclass
    class UpdateMap:
        """Keys to set; None removes a key. `replace` clears the map first."""

        updates: dict[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Change the config, or the metadata of the table, its schema or its fields (by id)."""

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: dict[int, LanceOperation.UpdateMap] | None = None
