"""Codec of UpdateBases: new bases, including those without an id."""

from __future__ import annotations

from lancelake.format.fragment import BasePath
from lancelake.format.ids import BaseId
from lancelake.format.operations import CODECS, UpdateBases

update_bases = CODECS["update_bases"]


def test_bases_are_read_as_they_were_written():
    base = BasePath(id=BaseId(0), is_dataset_root=False, path="s3://bucket/files")
    operation = UpdateBases(new_bases=(base,))

    assert update_bases.decode(update_bases.encode(operation)) == operation
