"""Arguments of operations: those of official releases are accepted, others refused."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from lancelake.pylance._dataset.lance_operation import LanceOperation
from lancelake.pylance._values.fragment_metadata import FragmentMetadata
from lancelake.pylance.schema import LanceSchema

ARROW = pa.schema([pa.field("a", pa.int32())])
FRAGMENT = FragmentMetadata(0, [], 1)


@pytest.mark.parametrize("fragments", [(FRAGMENT,), [1], [FRAGMENT, "x"], None], ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        LanceOperation.Append,
        lambda fragments: LanceOperation.Overwrite(ARROW, fragments),
        lambda fragments: LanceOperation.Delete(fragments, [], "true"),
        lambda fragments: LanceOperation.Update(updated_fragments=fragments),
        lambda fragments: LanceOperation.Update(new_fragments=fragments),
        lambda fragments: LanceOperation.Merge(fragments, LanceSchema.from_pyarrow(ARROW)),
    ],
    ids=["append", "overwrite", "delete", "update-old", "update-new", "merge"],
)
def test_anything_but_a_list_of_fragments_is_refused(make, fragments):
    with pytest.raises(TypeError):
        make(fragments)


def test_a_rewrite_of_anything_but_fragments_is_refused():
    with pytest.raises(TypeError):
        LanceOperation.Rewrite([LanceOperation.RewriteGroup([FRAGMENT], [3])], [])


def test_groups_of_a_rewrite_may_come_from_a_generator():
    group = LanceOperation.RewriteGroup([FRAGMENT], [FRAGMENT])

    assert LanceOperation.Rewrite((g for g in [group]), []).groups == [group]


def test_an_overwrite_gives_the_fields_of_an_arrow_schema_ids():
    assert LanceOperation.Overwrite(ARROW, []).new_schema == LanceSchema.from_pyarrow(ARROW)


def test_a_merge_warns_about_an_arrow_schema():
    with pytest.warns(DeprecationWarning, match="field ids"):
        operation = LanceOperation.Merge([], ARROW)

    assert operation.schema == LanceSchema.from_pyarrow(ARROW)


@pytest.mark.parametrize(
    ("operation", "shown"),
    [
        (LanceOperation.Append([]), "LanceOperation.Append(fragments=[])"),
        (LanceOperation.Restore(2), "LanceOperation.Restore(version=2)"),
        (
            LanceOperation.Update(),
            "LanceOperation.Update(removed_fragment_ids=[], updated_fragments=[], "
            "new_fragments=[], fields_modified=[], fields_for_preserving_frag_bitmap=[], "
            "update_mode='', updated_fragment_offsets=None)",
        ),
        (
            LanceOperation.UpdateConfig(LanceOperation.UpdateMap({"k": None})),
            "LanceOperation.UpdateConfig(config_updates=LanceOperation.UpdateMap("
            "updates={'k': None}, replace=False), table_metadata_updates=None, "
            "schema_metadata_updates=None, field_metadata_updates=None)",
        ),
    ],
)
def test_it_is_printed_as_official_releases_print_it(operation, shown):
    assert repr(operation) == shown


def test_operations_are_compared_by_their_values():
    assert LanceOperation.Restore(1) == LanceOperation.Restore(1)
    assert LanceOperation.Restore(1) != LanceOperation.Restore(2)


def test_every_operation_is_a_base_operation():
    assert isinstance(LanceOperation.Restore(1), LanceOperation.BaseOperation)


def test_operations_can_be_pickled():
    operation = LanceOperation.Delete([FRAGMENT], [3], "a > 1")

    assert pickle.loads(pickle.dumps(operation)) == operation
