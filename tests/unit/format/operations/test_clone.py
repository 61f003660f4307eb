"""Codec of Clone: the source, with and without names."""

from __future__ import annotations

import pytest

from lancelake.format.ids import Version
from lancelake.format.operations import CODECS, Clone

clone = CODECS["clone"]


@pytest.mark.parametrize("name", [None, "", "dev"])
def test_an_empty_name_differs_from_no_name(name):
    operation = Clone(
        is_shallow=True,
        ref_name=name,
        ref_version=Version(3),
        ref_path="s3://bucket/table",
        branch_name=name,
    )

    assert clone.decode(clone.encode(operation)) == operation
