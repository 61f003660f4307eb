"""Hugging Face data sets: conversion of tables, and of their columns for PyTorch."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lancelake.errors import UnsupportedError
from lancelake.extras import optional
from lancelake.pylance._values.opened import call_text

if TYPE_CHECKING:
    from lancelake.pylance.dataset import LanceDataset


def to_hf_dataset(
    dataset: LanceDataset, columns: list[str] | None = None, filter: str | None = None
) -> Any:
    """Return rows as a `datasets.Dataset` in memory.

    Features such as images and class labels come back if the table was written from a data set that
    has them.
    """
    library = _library()
    rows = dataset.to_table(columns, filter=filter)
    features = library.Features.from_arrow_schema(rows.schema)
    return library.Dataset(library.table.InMemoryTable(rows.cast(features.arrow_schema)))


def to_hf_iterable_dataset(
    dataset: LanceDataset, columns: list[str] | None = None, filter: str | None = None
) -> Any:
    """Return rows as a `datasets.IterableDataset`, read when it is iterated.

    Each fragment is a shard, so the workers of a data loader share the fragments between them. The
    version is the one of `dataset`, whatever is written later.
    """
    library = _library()
    schema = dataset.scanner(columns, filter=filter).projected_schema
    source = {
        "dataset": dataset,
        # A list is distributed over shards, other arguments are given to each.
        "columns": None if columns is None else tuple(columns),
        "filter": filter,
        "fragments": [fragment.fragment_id for fragment in dataset.get_fragments()],
    }
    features = library.Features.from_arrow_schema(schema)
    return library.IterableDataset.from_generator(_rows, features=features, gen_kwargs=source)


def _rows(
    dataset: LanceDataset, columns: tuple[str, ...] | None, filter: str | None, fragments: list[int]
) -> Iterator[dict[str, Any]]:
    names = None if columns is None else list(columns)
    for number in fragments:
        fragment = dataset.get_fragment(number)
        if fragment is not None:
            for batch in fragment.to_batches(columns=names, filter=filter):
                yield from batch.to_pylist()


def _library() -> Any:
    return optional("datasets", extra="hf", purpose="reading tables as Hugging Face data sets")


class HuggingFaceConverter:
    """Conversion of columns by the features of a data set."""

    def __init__(self, ds_info: Mapping[str, Any]) -> None:
        """Take the features from what Hugging Face stores in the metadata of a schema."""
        self.ds_info = ds_info

    def __repr__(self) -> str:
        return call_text(self, self.ds_info)

    def to_pytorch(self, col: str, array: pa.Array) -> Any:
        """Return the images of a column, or None if the column is no feature."""
        feature = self.ds_info.get("info", {}).get("features", {}).get(col)
        if feature is None:
            return None
        if feature["_type"] != "Image":
            raise UnsupportedError(f"features of type {feature['_type']} cannot be converted")
        return [_image(scalar.as_py()) for scalar in array]


def _image(stored: Mapping[str, Any]) -> Any:
    images = optional("PIL.Image", extra="hf", purpose="reading images")
    content = stored.get("bytes")
    return images.open(stored["path"] if content is None else io.BytesIO(content))
