"""RQ codes: signs of the values of rotated residuals, and further bits of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import UnsupportedError
from lancelake.index.vector.bit_blocks import (
    blocked_values,
    blocked_width,
    packed_rows,
    unblocked_values,
    unpacked_rows,
)
from lancelake.index.vector.codes import CodeMatrix, scored
from lancelake.index.vector.metric import Distances, Matrix, Metric
from lancelake.index.vector.residual_steps import nearest_steps
from lancelake.index.vector.rotation import Rotation, arbitrary_signs, rotation_of_signs

_BYTE = 8
# Rows that are widened to floats at once: they stay in the CPU cache.
_CHUNK_ROWS = 1 << 12
# For so many queries it is faster to compute products of matrices than to add table entries.
_MANY_QUERIES = 8
_BITS_OF_BYTE = np.unpackbits(
    np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1, bitorder="little"
).astype(np.float32)
# Of the error of an estimate, so many standard deviations are allowed for.
_DEVIATIONS = 1.9
_OF_QUERIES = "raw_query"
_OF_RESIDUALS = "residual_query"
ROTATED_BITS = range(1, 10)
"""Numbers of bits of a value."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RotatedCodes:
    """Codes of `bits` bits for each value of a residual, and numbers to estimate distances with.

    The layout of release 4 has one bit and numbers for products with residuals of queries. Later
    releases write numbers for products with the queries themselves, and up to nine bits.
    """

    metric: Metric
    dimension: int
    bits: int
    rotation: Rotation
    settings: Mapping[str, Any]
    is_of_residuals: bool

    name = "RQ"
    encodes_residuals = True

    @property
    def _further(self) -> int:
        """Bits of a value besides the sign."""
        return self.bits - 1

    @property
    def _sign_bytes(self) -> int:
        return self.dimension // _BYTE

    @property
    def _code_bytes(self) -> int:
        return self._sign_bytes + (self.dimension if self._further else 0)

    def fields(self) -> tuple[pa.Field, ...]:
        """Return the columns of the codes and of the numbers beside them."""
        names = ["__add_factors", "__scale_factors"]
        if not self.is_of_residuals:
            names.append("__error_factors")
        found = [pa.field("_rabit_codes", pa.list_(pa.uint8(), self._sign_bytes))]
        found += [pa.field(name, pa.float32()) for name in names]
        if self._further:
            width = blocked_width(self.dimension, self._further)
            found.append(pa.field("__blocked_ex_codes", pa.list_(pa.uint8(), width)))
            found.append(pa.field("__add_factors_ex", pa.float32()))
            found.append(pa.field("__scale_factors_ex", pa.float32()))
        return tuple(found)

    def metadata(self) -> Mapping[str, Any]:
        """Return the rotation and the number of bits."""
        return dict(self.settings)

    def buffer(self) -> bytes | None:
        """Return None: the signs of the rotation are among the settings."""
        return None

    def turned(self, vectors: Matrix) -> Matrix:
        """Rotate vectors."""
        found: Matrix = np.asarray(vectors, dtype=np.float32) @ self.rotation
        return found

    def encode(self, vectors: Matrix, centers: Matrix) -> CodeMatrix:
        """Encode residuals; a row has the bytes of its signs, its further bits and its numbers."""
        residuals = vectors - centers
        turned = self.turned(residuals)
        is_positive = ~np.signbit(turned)
        signs = np.packbits(is_positive, axis=1, bitorder="little")
        squares = np.einsum("ij,ij->i", residuals, residuals)
        base = squares
        if self.metric is Metric.DOT:
            base = 1 - np.einsum("ij,ij->i", residuals, centers)
        if self.is_of_residuals:
            products = np.abs(turned).sum(axis=1) / np.float32(np.sqrt(self.dimension))
            return _rows(signs, None, base, self._scale(squares, products))
        rotated = self.turned(centers)
        halves = np.where(is_positive, np.float32(0.5), np.float32(-0.5))
        products = np.abs(turned).sum(axis=1) / 2
        scale = self._scale(squares, products)
        add = base - scale * np.einsum("ij,ij->i", rotated, halves)
        error = self._error(squares, products)
        if not self._further:
            return _rows(signs, None, add, scale, error)
        steps = nearest_steps(turned, self._further)
        values = self._values(is_positive, steps)
        scale_all = self._scale(squares, np.einsum("ij,ij->i", turned, values))
        add_all = base - scale_all * np.einsum("ij,ij->i", rotated, values)
        return _rows(signs, steps, add, scale, error, add_all, scale_all)

    def decode(self, codes: CodeMatrix) -> Matrix:
        """Return residuals near those that were encoded."""
        _, scale = self._estimate(codes)
        lengths = scale * self._unit / np.float32(-1 if self.metric is Metric.DOT else -2)
        found = np.empty((len(codes), self.dimension), dtype=np.float32)
        for start, values in self._chunks(codes):
            found[start : start + len(values)] = values @ self.rotation.T
        return found * lengths[:, np.newaxis]

    def stored(self, codes: CodeMatrix) -> tuple[npt.NDArray[Any], ...]:
        """Return the values of the columns for the rows of one partition."""
        numbers = self._numbers(codes)
        count = 2 if self.is_of_residuals else 3
        signs = codes[:, : self._sign_bytes]
        is_packed = bool(self.settings.get("packed"))
        columns = [packed_rows(signs) if is_packed else np.ascontiguousarray(signs).reshape(-1)]
        columns += [np.ascontiguousarray(numbers[:, i]) for i in range(count)]
        if self._further:
            steps = codes[:, self._sign_bytes : self._code_bytes]
            columns.append(blocked_values(steps, self._further).reshape(-1))
            columns += [np.ascontiguousarray(numbers[:, i]) for i in range(count, count + 2)]
        return tuple(columns)

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the codes of a partition, one row each."""
        signs = values[0].reshape(rows, self._sign_bytes)
        if self.settings.get("packed"):
            signs = unpacked_rows(values[0], rows, self._sign_bytes)
        count = 2 if self.is_of_residuals else 3
        numbers = list(values[1 : 1 + count])
        steps = None
        if self._further:
            blocks = values[1 + count].reshape(rows, blocked_width(self.dimension, self._further))
            steps = unblocked_values(blocks, self.dimension, self._further)
            numbers += values[2 + count :]
        return _rows(signs, steps, *numbers)

    def rows(self, loaded: CodeMatrix) -> CodeMatrix:
        """Return loaded codes."""
        return loaded

    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Estimate distances by the products of rotated queries with the codes."""
        residuals = queries - center
        add, scale = self._estimate(loaded)
        found = self._products(residuals if self.is_of_residuals else queries, loaded)
        found *= scale
        if self.metric is Metric.DOT:
            toward = (queries @ center)[:, np.newaxis]
            if self.is_of_residuals:
                return scored(found + add - toward)
            # What is added belongs to a query at the center: a query takes its share of it.
            share = _ratio(toward, np.full_like(toward, center @ center))
            return scored(found + (1 - toward) + share * (add - 1))
        found += add
        found += np.einsum("ij,ij->i", residuals, residuals)[:, np.newaxis]
        # Of vectors of length 1, half of the squared difference is the cosine distance.
        return scored(found / 2 if self.metric is Metric.COSINE else found)

    def top(
        self, queries: Matrix, loaded: CodeMatrix, k: int, center: Matrix
    ) -> tuple[Distances, npt.NDArray[np.int64]] | None:
        """Return None: distances have numbers of their own for each row."""
        return None

    @property
    def _unit(self) -> np.float32:
        """Length of the step of a value that has signs only; further bits count halves."""
        return np.float32(1 / np.sqrt(self.dimension) if self.is_of_residuals else 0.5)

    def _products(self, queries: Matrix, loaded: CodeMatrix) -> npt.NDArray[np.float32]:
        """Return the product of each query with each code."""
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        found = np.empty((len(queries), len(loaded)), dtype=np.float32)
        if not self._further and len(queries) < _MANY_QUERIES:
            tables = queries.reshape(len(queries), -1, _BYTE) @ _BITS_OF_BYTE.T
            columns = np.ascontiguousarray(loaded[:, : self._sign_bytes].T)
            for place, table in enumerate(tables):
                row = table[0].take(columns[0])
                for part, chosen in zip(table[1:], columns[1:], strict=True):
                    row += part.take(chosen)
                found[place] = (2 * row - queries[place].sum()) * self._unit
            return found
        for start, values in self._chunks(loaded):
            found[:, start : start + len(values)] = (queries @ values.T) * self._unit
        return found

    def _chunks(self, codes: CodeMatrix) -> Iterator[tuple[int, Matrix]]:
        """Yield the values of some rows at once, in units, with the first row of each part."""
        for start in range(0, len(codes), _CHUNK_ROWS):
            part = codes[start : start + _CHUNK_ROWS]
            bits = np.unpackbits(part[:, : self._sign_bytes], axis=1, bitorder="little")
            steps = part[:, self._sign_bytes : self._code_bytes] if self._further else None
            yield start, 2 * self._values(bits, steps)

    def _values(self, signs: npt.NDArray[Any], steps: npt.NDArray[Any] | None) -> Matrix:
        """Return the values of codes: the middle of their steps."""
        count = 1 << self._further
        found = signs.astype(np.float32) * np.float32(count) - np.float32(count - 0.5)
        return found if steps is None else found + steps

    def _estimate(self, codes: CodeMatrix) -> tuple[Matrix, Matrix]:
        """Return what is added to the products of all bits, and by what they are scaled."""
        numbers = self._numbers(codes)
        first = numbers.shape[1] - 2 if self._further else 0
        return numbers[:, first], numbers[:, first + 1]

    def _numbers(self, codes: CodeMatrix) -> npt.NDArray[np.float32]:
        found: npt.NDArray[np.float32]
        found = np.ascontiguousarray(codes[:, self._code_bytes :]).view(np.float32)
        return found

    def _scale(self, squares: Matrix, products: Matrix) -> Matrix:
        factor = np.float32(-1 if self.metric is Metric.DOT else -2)
        return _ratio(factor * squares, products)

    def _error(self, squares: Matrix, products: Matrix) -> Matrix:
        """Return a bound of the error of the estimate by signs, relative to a query's length."""
        alignment = _ratio(squares * np.float32(self.dimension / 4), products**2)
        angle = np.sqrt(np.maximum(alignment - 1, 0) / max(1, self.dimension - 1))
        error = np.sqrt(squares) * np.float32(_DEVIATIONS) * angle
        found: Matrix = error if self.metric is Metric.DOT else 2 * error
        return found


def _ratio(numerators: Matrix, denominators: Matrix) -> Matrix:
    zero = np.zeros_like(numerators)
    found: Matrix = np.divide(numerators, denominators, out=zero, where=denominators != 0)
    return found


def _rows(signs: CodeMatrix, steps: CodeMatrix | None, *numbers: Matrix) -> CodeMatrix:
    """Return the bytes of rows."""
    floats = np.stack(numbers, axis=1).astype(np.float32)
    parts = [signs] if steps is None else [signs, steps]
    return np.concatenate([*parts, floats.view(np.uint8)], axis=1)


def new_settings(dimension: int, bits: int) -> dict[str, Any]:
    """Return settings for a new index; those of one bit are read by all releases that know RQ."""
    settings: dict[str, Any] = {
        "rotate_mat_position": None,
        "fast_rotation_signs": list(arbitrary_signs(dimension)),
        "rotation_type": "fast",
        "code_dim": dimension,
        "num_bits": bits,
        "packed": True,
    }
    if bits > 1:
        settings["query_estimator"] = _OF_QUERIES
    return settings


def rotated_codes(
    metric: Metric, dimension: int, settings: Mapping[str, Any], matrix: Matrix | None = None
) -> RotatedCodes:
    """Return the codes of an index with these settings, and with a matrix if it stores one."""
    bits = int(settings["num_bits"])
    estimator = settings.get("query_estimator", _OF_RESIDUALS)
    if bits not in ROTATED_BITS or estimator not in (_OF_QUERIES, _OF_RESIDUALS):
        raise UnsupportedError(f"RQ codes of {bits} bits for {estimator} are not supported")
    if bits > 1 and estimator == _OF_RESIDUALS:
        raise UnsupportedError(f"RQ codes of {bits} bits for residuals are not supported")
    if matrix is None:
        rotation = rotation_of_signs(bytes(settings["fast_rotation_signs"]), dimension)
    else:
        rotation = np.ascontiguousarray(matrix.reshape(dimension, dimension).T, np.float32)
    return RotatedCodes(
        metric=metric,
        dimension=dimension,
        bits=bits,
        rotation=rotation,
        settings=settings,
        is_of_residuals=estimator == _OF_RESIDUALS,
    )
