"""Schemas of pydantic models, and annotations for vectors, as in pylance."""

from __future__ import annotations

import importlib
import re
from abc import ABC, abstractmethod
from typing import Any

import pyarrow as pa

from lancelake.core.values.writes import objects
from lancelake.errors import InvalidRequestError, UnknownDataError

__all__ = [
    "FixedSizeListMixin",
    "MultiVector",
    "Vector",
    "get_extras",
    "is_nullable",
    "pydantic_to_schema",
]


class FixedSizeListMixin(ABC):
    """Base of the annotations for vectors."""

    @staticmethod
    @abstractmethod
    def dim() -> int:
        """Return the number of dimensions."""

    @staticmethod
    @abstractmethod
    def value_arrow_type() -> pa.DataType:
        """Return the Arrow type of one dimension."""


def Vector(
    dim: int,
    value_type: pa.DataType = pa.float32(),  # noqa: B008  # an Arrow type is immutable
    nullable: bool = True,
) -> type[FixedSizeListMixin]:
    """Return an annotation for vectors of a fixed size.

    Args:
        dim: The number of dimensions.
        value_type: The Arrow type of one dimension.
        nullable: Whether the column of a field without a default may have nulls.

    Returns:
        A subclass of `list`; pydantic checks the number of dimensions of its values.

    Examples:
        >>> import pydantic
        >>> from lancelake.pylance.pydantic import Vector, pydantic_to_schema
        >>> class Page(pydantic.BaseModel):
        ...     id: int
        ...     embedding: Vector(2)
        >>> pydantic_to_schema(Page).field("embedding").type
        FixedSizeListType(fixed_size_list<item: float>[2])
    """
    return _annotation(dim, value_type, is_nullable=nullable, is_several=False)


def MultiVector(
    dim: int,
    value_type: pa.DataType = pa.float32(),  # noqa: B008  # an Arrow type is immutable
    nullable: bool = True,
) -> type[FixedSizeListMixin]:
    """Return an annotation for lists of vectors of a fixed size.

    Args:
        dim: The number of dimensions of each vector.
        value_type: The Arrow type of one dimension.
        nullable: Whether the column of a field without a default may have nulls.

    Returns:
        A subclass of `list`; pydantic checks the number of dimensions of every vector.

    Examples:
        >>> import pydantic
        >>> from lancelake.pylance.pydantic import MultiVector, pydantic_to_schema
        >>> class Page(pydantic.BaseModel):
        ...     patches: MultiVector(2)
        >>> pydantic_to_schema(Page).field("patches").type
        ListType(list<item: fixed_size_list<item: float>[2]>)
    """
    return _annotation(dim, value_type, is_nullable=nullable, is_several=True)


def pydantic_to_schema(model: type) -> pa.Schema:
    """Return the Arrow schema of the rows that a model describes.

    Args:
        model: A pydantic model. Its fields may be numbers, text, bytes, dates, enumerations,
            vectors, other models, lists of these, and any of these or None.

    Returns:
        One column per field, nullable if its annotation includes None.

    Raises:
        UnknownDataError: This is no model, or an annotation has no Arrow type.

    Examples:
        >>> import pydantic
        >>> from lancelake.pylance.pydantic import pydantic_to_schema
        >>> class Person(pydantic.BaseModel):
        ...     id: int
        ...     name: str | None = None
        >>> pydantic_to_schema(Person)
        id: int64 not null
        name: string
    """
    _ensure_model(model)
    return objects.schema_of(model)


def is_nullable(field: Any) -> bool:
    """Return whether the column of a field of a model may have nulls.

    Args:
        field: The field, as `model_fields` of the model has it.

    Returns:
        Whether None is among its values; a default value alone does not make a column nullable.

    Examples:
        >>> import pydantic
        >>> from lancelake.pylance.pydantic import is_nullable
        >>> class Person(pydantic.BaseModel):
        ...     age: int = 0
        >>> is_nullable(Person.model_fields["age"])
        False
    """
    return objects.is_nullable(field.annotation)


def get_extras(field: Any, key: str) -> Any:
    """Return a value that a field of a model has in `json_schema_extra`.

    Args:
        field: The field, as `model_fields` of the model has it.
        key: The name of the value.

    Returns:
        The value; None without it.

    Examples:
        >>> import pydantic
        >>> from lancelake.pylance.pydantic import get_extras
        >>> class Visit(pydantic.BaseModel):
        ...     at: str = pydantic.Field(json_schema_extra={"tz": "UTC"})
        >>> get_extras(Visit.model_fields["at"], "tz")
        'UTC'
    """
    return (field.json_schema_extra or {}).get(key)


def model_rows(model: type, rows: list[Any]) -> pa.RecordBatch:
    """Return instances of a model as a batch of its schema."""
    _ensure_model(model)
    batch = objects.batch_of(rows, model)
    if not rows:
        raise InvalidRequestError("data must be a non-empty list of instances of a pydantic model")
    return batch


def snake_case(name: str) -> str:
    """Return the name of a class as that of a table."""
    return re.sub("(?<!^)(?=[A-Z])", "_", name).lower()


def _ensure_model(model: Any) -> None:
    if not objects.is_model(model):
        problem = f"model_class must be a Pydantic BaseModel subclass, got {model!r}"
        raise UnknownDataError(problem, found=repr(model))


def _annotation(
    size: int, value_type: pa.DataType, *, is_nullable: bool, is_several: bool
) -> type[FixedSizeListMixin]:
    """Return the class of lists whose length, or that of their items, pydantic checks."""

    class Vectors(list[Any], FixedSizeListMixin):
        def __repr__(self) -> str:
            return f"{'MultiVector' if is_several else 'FixedSizeList'}(dim={size})"

        @staticmethod
        def dim() -> int:
            return size

        @staticmethod
        def value_arrow_type() -> pa.DataType:
            return value_type

        @staticmethod
        def nullable() -> bool:
            return is_nullable

        @staticmethod
        def is_multi_vector() -> bool:
            return is_several

        @classmethod
        def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> Any:
            build = importlib.import_module("pydantic_core.core_schema")
            return _check(build, cls, size, is_several=is_several)

    return Vectors


def _check(build: Any, kind: type, size: int, *, is_several: bool) -> Any:
    """Return the pydantic schema of a vector type, which converts values to the class."""
    numbers = build.list_schema(min_length=size, max_length=size, items_schema=build.float_schema())
    checked = build.list_schema(items_schema=numbers) if is_several else numbers
    return build.no_info_after_validator_function(kind, checked)
