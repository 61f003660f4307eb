from __future__ import annotations

import pytest

from lancelake.commit.external_store import ExternalHandler
from lancelake.commit.handler import ConditionalPut, taken_apart
from lancelake.commit.snapshot import open_line
from lancelake.errors import InvalidRequestError
from lancelake.format import layout
from lancelake.format.layout import ManifestNaming, manifest_name
from lancelake.storage.location import Location

OPTIONS = {"aws_region": "us-east-1", "aws_access_key_id": "k", "aws_secret_access_key": "s"}


@pytest.mark.parametrize(
    "uri", ["/tmp/t.lance", "memory://m/t", "s3://b/t", "s3://b--use1-az4--x-s3/t"]
)
def test_stores_with_put_if_absent_need_nothing_else(uri: str) -> None:
    assert isinstance(open_line(Location.parse(uri, OPTIONS)).handler, ConditionalPut)


@pytest.mark.parametrize("naming", ManifestNaming)
def test_the_next_version_is_found_by_its_name(naming: ManifestNaming) -> None:
    line = open_line(Location.parse(f"memory://next-{naming.name}/t"))
    name = taken_apart(manifest_name(3, naming))
    assert not line.has_next(name)
    line.store.create(layout.manifest(manifest_name(4, naming)), b"")
    assert line.has_next(name)


def test_a_store_that_lists_in_no_order_gets_a_hint() -> None:
    express = open_line(Location.parse("s3://b--use1-az4--x-s3/t", OPTIONS))
    plain = open_line(Location.parse("s3://b/t", OPTIONS))
    assert (express.creates_hint, plain.creates_hint) == (True, False)


def test_s3_with_dynamodb_uses_the_named_table() -> None:
    line = open_line(Location.parse("s3+ddb://b/t?ddbTableName=commits", OPTIONS))
    assert isinstance(line.handler, ExternalHandler)


def test_s3_with_dynamodb_but_no_table_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="ddbTableName"):
        open_line(Location.parse("s3+ddb://b/t", OPTIONS))
