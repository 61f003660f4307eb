from __future__ import annotations

import pytest

from lancelake.data.blobs.external import stored_place
from lancelake.format.bases import BasePath
from lancelake.format.ids import BaseId

BASES = (
    BasePath(id=BaseId(1), is_dataset_root=False, path="s3://bucket/blobs"),
    BasePath(id=BaseId(2), is_dataset_root=False, path="/data/blobs/"),
)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://bucket/blobs/a/b.bin", (1, "a/b.bin")),
        ("file:///data/blobs/x.bin", (2, "x.bin")),
        ("/data/blobs/x.bin", (2, "x.bin")),
        ("s3://bucket/blobs2/b.bin", None),
        ("s3://other/blobs/b.bin", None),
        (r"s3://a@b\c/blobs/b.bin", None),
    ],
)
def test_an_object_is_found_below_its_base(uri: str, expected: tuple[int, str] | None) -> None:
    assert stored_place(uri, BASES) == expected
