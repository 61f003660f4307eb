"""A DynamoDB table beside an S3 bucket, as tables with external commits need them."""

from __future__ import annotations

import itertools
from typing import Any

import boto3  # type: ignore[import-untyped]  # it has no stubs

from tests.support.s3_server import S3Server

_numbers = itertools.count()


def client(server: S3Server) -> Any:  # boto3 makes its classes at run time
    """Return a client of the server's DynamoDB."""
    options = server.storage_options
    return boto3.client(
        "dynamodb",
        endpoint_url=server.endpoint,
        aws_access_key_id=options["aws_access_key_id"],
        aws_secret_access_key=options["aws_secret_access_key"],
        region_name=options["aws_region"],
    )


def new_table(server: S3Server) -> str:
    """Make a table with the keys that official Lance expects; return its name."""
    name = f"commits-{next(_numbers)}"
    keys = {"base_uri": ("HASH", "S"), "version": ("RANGE", "N")}
    client(server).create_table(
        TableName=name,
        KeySchema=[{"AttributeName": k, "KeyType": kind} for k, (kind, _) in keys.items()],
        AttributeDefinitions=[
            {"AttributeName": k, "AttributeType": t} for k, (_, t) in keys.items()
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


def options_for(server: S3Server) -> dict[str, str]:
    """Return the storage options that reach both."""
    return {**server.storage_options, "dynamodb_endpoint": server.endpoint}


def items(server: S3Server, table: str) -> list[dict[str, str]]:
    """Return all items with plain values, by version."""
    found = client(server).scan(TableName=table)["Items"]
    plain = [{k: next(iter(v.values())) for k, v in item.items()} for item in found]
    return sorted(plain, key=lambda item: int(item["version"]))
