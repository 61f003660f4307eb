"""Strategies for the operations of a transaction, one for each."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from lancelake.format.frozen import FrozenMap
from lancelake.format.operations import (
    Append,
    Clone,
    CreateIndex,
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    Replacement,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Transaction,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from tests.strategies import format_values as values
from tests.strategies.format_values import flag, i32, strangers, text, tuples, u32, u64, uuids

_fragments = tuples(values.fragments(), max_size=2)
_optional_text = st.none() | text
_map_updates = st.builds(
    MapUpdate,
    entries=st.dictionaries(text, _optional_text, max_size=2).map(FrozenMap),
    replace=flag,
)
_groups = st.builds(
    RewriteGroup, old_fragments=_fragments, new_fragments=_fragments, unknown=strangers()
)
_rewritten_indices = st.builds(
    RewrittenIndex,
    old_id=uuids,
    new_id=uuids,
    new_details=st.none() | values.index_details(),
    new_index_version=u32,
    new_index_files=tuples(values.index_files()),
    unknown=strangers(),
)
_replacements = st.builds(Replacement, fragment_id=u64, new_file=values.data_files())

BY_KIND: dict[type[Operation], SearchStrategy[Operation]] = {
    Append: st.builds(Append, fragments=_fragments, unknown=strangers()),
    Clone: st.builds(
        Clone,
        is_shallow=flag,
        ref_name=_optional_text,
        ref_version=u64,
        ref_path=text,
        branch_name=_optional_text,
        unknown=strangers(),
    ),
    CreateIndex: st.builds(
        CreateIndex,
        new_indices=tuples(values.index_entries(), max_size=2),
        removed_indices=tuples(values.index_entries(), max_size=2),
        unknown=strangers(),
    ),
    DataReplacement: st.builds(
        DataReplacement, replacements=tuples(_replacements), unknown=strangers()
    ),
    Delete: st.builds(
        Delete,
        updated_fragments=_fragments,
        deleted_fragment_ids=tuples(u64),
        predicate=text,
        unknown=strangers(),
    ),
    Merge: st.builds(
        Merge,
        fragments=_fragments,
        schema=values.schemas(),
        preserves_nullability=flag,
        unknown=strangers(),
    ),
    Overwrite: st.builds(
        Overwrite,
        fragments=_fragments,
        schema=values.schemas(),
        config_upsert_values=values.text_maps(),
        initial_bases=tuples(values.base_paths(), max_size=2),
        unknown=strangers(),
    ),
    Project: st.builds(
        Project,
        schema=values.schemas(with_metadata=False),
        preserves_nullability=flag,
        unknown=strangers(),
    ),
    ReserveFragments: st.builds(ReserveFragments, num_fragments=u32, unknown=strangers()),
    Restore: st.builds(Restore, version=u64, unknown=strangers()),
    Rewrite: st.builds(
        Rewrite,
        groups=tuples(_groups, max_size=2),
        rewritten_indices=tuples(_rewritten_indices, max_size=2),
        unknown=strangers(),
    ),
    Update: st.builds(
        Update,
        removed_fragment_ids=tuples(u64),
        updated_fragments=_fragments,
        new_fragments=_fragments,
        fields_modified=tuples(u32),
        merged_generations=tuples(values.merged_generations()),
        fields_for_preserving_frag_bitmap=tuples(u32),
        update_mode=st.sampled_from(UpdateMode),
        inserted_rows=st.none() | values.key_filters(),
        unknown=strangers(),
    ),
    UpdateBases: st.builds(UpdateBases, new_bases=tuples(values.base_paths()), unknown=strangers()),
    UpdateConfig: st.builds(
        UpdateConfig,
        config=st.none() | _map_updates,
        table_metadata=st.none() | _map_updates,
        schema_metadata=st.none() | _map_updates,
        field_metadata=st.dictionaries(i32, _map_updates, max_size=2).map(FrozenMap),
        unknown=strangers(),
    ),
    UpdateMemWalState: st.builds(
        UpdateMemWalState,
        merged_generations=tuples(values.merged_generations()),
        unknown=strangers(),
    ),
}


def transactions(operations: SearchStrategy[Operation]) -> SearchStrategy[Transaction]:
    """Draw a transaction around one of these operations."""
    return st.builds(
        Transaction,
        read_version=u64,
        uuid=text,
        operation=operations,
        tag=text,
        properties=values.text_maps(),
        unknown=strangers(),
    )
