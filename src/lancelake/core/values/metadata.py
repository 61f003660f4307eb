"""Values of the format: schemas, fragments, operations, index entries."""

from typing import TYPE_CHECKING

from lancelake.core.values import load_on_use

if TYPE_CHECKING:
    from lancelake.caches import Caches
    from lancelake.commit.snapshot import Snapshot
    from lancelake.data.column_reader import stored_schema
    from lancelake.data.schema_check import found_file
    from lancelake.format import (
        arrow_schema,
        index_meta,
        layout,
        logical_types,
        operations,
        row_address,
        rowids,
    )
    from lancelake.format.arrow_schema import public_field, public_schema
    from lancelake.format.evolution import Widened
    from lancelake.format.fragment import (
        BasePath,
        DataFile,
        DeletionFile,
        DeletionFileType,
        ExternalFile,
        Fragment,
        from_bytes,
        to_bytes,
    )
    from lancelake.format.fragment_list import FragmentList
    from lancelake.format.frozen import FrozenMap
    from lancelake.format.ids import MAX_ROWS, OFFSET_BITS, BaseId, FieldId, FragmentId, Version
    from lancelake.format.index_meta import (
        FRAGMENT_REUSE,
        MEM_WAL,
        IndexDetails,
        IndexFile,
        IndexMetadata,
    )
    from lancelake.format.logical_types import described, described_schema
    from lancelake.format.manifest import Manifest
    from lancelake.format.operations import (
        COMMIT_MESSAGE,
        Append,
        MapUpdate,
        Operation,
        Overwrite,
        Replacement,
        ReserveFragments,
        Restore,
        Rewrite,
        RewriteGroup,
        RewrittenIndex,
        Transaction,
        Update,
        UpdateConfig,
        UpdateMode,
    )
    from lancelake.format.primary_key import KEY, POSITION, key_names
    from lancelake.format.row_address import by_fragment, fragment_of, offset_of
    from lancelake.format.rowids import Range, RowIdSequence, Segment
    from lancelake.format.schema import (
        BLOB_V2,
        EXTENSION_METADATA,
        EXTENSION_NAME,
        DictionaryPage,
        Encoding,
        Field,
        Schema,
        comma_parts,
        join_path,
        quote_segment,
        quoted_name,
        quoted_path,
        split_list,
        split_path,
    )
    from lancelake.format.words import parse_duration, size
    from lancelake.storage.local import remove_empty_folders
    from lancelake.storage.location import Location, Session, default_session, is_uri
    from lancelake.storage.options import is_known
    from lancelake.storage.store import ObjectStore
    from lancelake.storage.table_files import FileAt, TableFiles, place_named_by
    from lancelake.table.config import key_entries
    from lancelake.txn.table_metadata import with_field_metadata
else:
    __getattr__ = load_on_use(__name__)
