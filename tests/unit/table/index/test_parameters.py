"""The named parameters are those that kinds of indices have."""

from __future__ import annotations

from lancelake.index.scalar.bloom_filter import ITEMS, PROBABILITY
from lancelake.index.scalar.btree.build import PAGE_ROWS_PARAMETER
from lancelake.index.scalar.zone_map import ROWS_PER_ZONE
from lancelake.index.text.parameters import _TUNING, NAMES
from lancelake.index.vector.settings import _KNOWN
from lancelake.table.index.build import ScalarParameters, TableIndexParameters, VectorParameters


def test_scalar_parameters() -> None:
    text = NAMES | set(_TUNING)
    others = {ITEMS, PROBABILITY, PAGE_ROWS_PARAMETER, ROWS_PER_ZONE}
    assert set(ScalarParameters.__annotations__) == text | others


def test_vector_parameters() -> None:
    models = {"index_type", "ivf_centroids", "pq_codebook", "sq_bounds", "rabitq_model"}
    named = set(TableIndexParameters.__annotations__) - set(ScalarParameters.__annotations__)
    assert named - {"index_file_version"} == set(_KNOWN) - models
    assert set(VectorParameters.__annotations__) <= named
