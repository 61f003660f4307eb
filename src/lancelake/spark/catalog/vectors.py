"""Vector columns declared in SQL: arrays whose size is a table property."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import types as t

from lancelake.errors import InvalidRequestError
from lancelake.spark.types import VECTOR_SIZE


def with_vectors(schema: t.StructType, properties: Mapping[str, str]) -> t.StructType:
    """Return a schema with the sizes of vectors, which properties give by column.

    The property is that of the official connector: `<column>.arrow.fixed-size-list.size`.
    """
    suffix = f".{VECTOR_SIZE}"
    sizes = {
        key.removesuffix(suffix): value for key, value in properties.items() if key.endswith(suffix)
    }
    unknown = sorted(set(sizes) - set(schema.fieldNames()))
    if unknown:
        raise InvalidRequestError(
            f"property {unknown[0]}{suffix} names a column that the table does not have",
            option=unknown[0] + suffix,
        )
    return t.StructType([_sized(field, sizes.get(field.name)) for field in schema.fields])


def _sized(field: t.StructField, size: str | None) -> t.StructField:
    if size is None:
        return field
    metadata = {**(field.metadata or {}), VECTOR_SIZE: size}
    return t.StructField(field.name, field.dataType, field.nullable, metadata)
