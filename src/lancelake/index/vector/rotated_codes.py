"""Codes of rotated vectors (RQ)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lancelake.errors import UnsupportedError
from lancelake.index.vector.codes import CodeMatrix, Codes, as_distances
from lancelake.index.vector.vectors import Distances, Matrix, Metric

# Step sizes that are tried for each vector, of which the best is taken.
_TRIED = 24
_CHUNK_ROWS = 1 << 12
# Smaller step sizes than those that use all codes, as a share, are not better.
_LEAST_SHARE = (0.0, 0.15, 0.20, 0.52, 0.59, 0.71, 0.75, 0.77, 0.81)
_MORE = 10
_TINY = np.float32(1e-5)


def nearest_steps(vectors: Matrix, bits: int) -> npt.NDArray[np.uint8]:
    """Return the steps of values from the middle; those of negative values count backwards.

    For each vector the step size is chosen whose codes have the smallest angle to it.
    """
    parts = [
        _chunk(vectors[start : start + _CHUNK_ROWS], bits)
        for start in range(0, len(vectors), _CHUNK_ROWS)
    ]
    return np.concatenate(parts) if parts else np.zeros(vectors.shape, dtype=np.uint8)


def _chunk(vectors: Matrix, bits: int) -> npt.NDArray[np.uint8]:
    sizes = np.abs(vectors).astype(np.float32)
    largest = sizes.max(axis=1, keepdims=True)
    sizes = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
    most = (1 << bits) - 1
    end = np.float32(most + _MORE)
    best = np.full(len(vectors), -np.inf, dtype=np.float32)
    steps = np.zeros(vectors.shape, dtype=np.uint8)
    for factor in np.linspace(end * _LEAST_SHARE[bits], end, _TRIED, dtype=np.float32):
        tried = np.minimum(np.floor(sizes * factor + _TINY), most)
        middle = tried + np.float32(0.5)
        length = np.sqrt(np.einsum("ij,ij->i", middle, middle))
        score = np.einsum("ij,ij->i", middle, sizes) / length
        better = score > best
        best[better] = score[better]
        steps[better] = tried[better].astype(np.uint8)
    return np.where(np.signbit(vectors), np.uint8(most) - steps, steps)


Rotation = npt.NDArray[np.float32]
"""Orthogonal matrix; `vectors @ rotation` are the rotated vectors."""

_ROUNDS = 4


def arbitrary_signs(dimension: int) -> bytes:
    """Return the signs of a rotation, the same ones for each dimension."""
    return hashlib.shake_256(b"rotation").digest(_ROUNDS * _round_bytes(dimension))


@lru_cache(maxsize=8)
def rotation_of_signs(signs: bytes, dimension: int) -> Rotation:
    """Return the rotation that the signs of an index stand for.

    Each of four rounds flips signs and applies a Hadamard transform; if the dimension is no power
    of two, to its first and last values in turn, followed by sums and differences of both halves.
    """
    if len(signs) != _ROUNDS * _round_bytes(dimension) or dimension % 2:
        raise ValueError(f"{len(signs)} bytes are not the signs of {dimension} values")
    size = 1 << (dimension.bit_length() - 1)
    values = np.eye(dimension, dtype=np.float64)
    bits = np.unpackbits(np.frombuffer(signs, np.uint8).reshape(_ROUNDS, -1), 1, bitorder="little")
    for number, flipped in enumerate(bits[:, :dimension]):
        values = np.where(flipped, -values, values)
        start = 0 if number % 2 == 0 else dimension - size
        values[:, start : start + size] = _transform(values[:, start : start + size])
        if size != dimension:
            first, second = np.split(values, 2, axis=1)
            values = np.concatenate([first + second, first - second], axis=1) / np.sqrt(2)
    rotation: Rotation = values.astype(np.float32)
    rotation.setflags(write=False)
    return rotation


def _round_bytes(dimension: int) -> int:
    return -(-dimension // 8)


def _transform(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the Hadamard transform of each row, of the same length."""
    rows, size = values.shape
    half = 1
    while half < size:
        pairs = values.reshape(rows, -1, 2, half)
        first, second = pairs[:, :, 0], pairs[:, :, 1]
        values = np.stack([first + second, first - second], axis=2).reshape(rows, size)
        half *= 2
    scaled: npt.NDArray[np.float64] = values / np.sqrt(size)
    return scaled


Bytes = npt.NDArray[np.uint8]

_ROWS = 32
_VALUES = 64
_RUN = 16
_BYTE = 8
_LOW, _HIGH = np.uint8(0x0F), np.uint8(0xF0)
_NIBBLE = 4
# Places of 16 rows in a block, as vector instructions read them.
_ORDER = np.arange(_RUN).reshape(2, -1).T.reshape(-1)


def pack_rows(codes: Bytes) -> Bytes:
    """Return the bytes of rows in blocks of 32 rows, the nibbles of two rows in each byte.

    The rows that fill no block follow, column by column.
    """
    rows, width = codes.shape
    whole = rows - rows % _ROWS
    columns = codes[:whole].reshape(whole // _ROWS, _ROWS, width).transpose(0, 2, 1)
    first, second = columns[:, :, _ORDER], columns[:, :, _ORDER + _RUN]
    low = (first & _LOW) | (second << _NIBBLE)
    high = (first >> _NIBBLE) | (second & _HIGH)
    blocks = np.stack([low, high], axis=2).reshape(-1)
    return np.concatenate([blocks, codes[whole:].T.reshape(-1)])


def unpack_rows(values: Bytes, rows: int, width: int) -> Bytes:
    """Return the rows of `packed_rows`."""
    whole = rows - rows % _ROWS
    blocks = values[: whole * width].reshape(whole // _ROWS, width, 2, _RUN)
    low, high = blocks[:, :, 0], blocks[:, :, 1]
    columns = np.empty((whole // _ROWS, width, _ROWS), dtype=np.uint8)
    columns[:, :, _ORDER] = (low & _LOW) | (high << _NIBBLE)
    columns[:, :, _ORDER + _RUN] = (low >> _NIBBLE) | (high & _HIGH)
    rows_found = np.empty((rows, width), dtype=np.uint8)
    rows_found[:whole] = columns.transpose(0, 2, 1).reshape(whole, width)
    rows_found[whole:] = values[whole * width :].reshape(width, rows - whole).T
    return rows_found


def blocked_width(dimension: int, bits: int) -> int:
    """Return the bytes of a row of `dimension` numbers of some bits."""
    return -(-dimension // _VALUES) * _VALUES * bits // _BYTE


def block_values(values: Bytes, bits: int) -> Bytes:
    """Return numbers of some bits, interleaved in blocks of 64 numbers."""
    rows, dimension = values.shape
    padded = np.zeros((rows, -(-dimension // _VALUES) * _VALUES), dtype=np.uint8)
    padded[:, :dimension] = values
    bits_of = np.unpackbits(padded[:, :, np.newaxis], axis=2, count=bits, bitorder="little")
    blocks = np.empty((rows, padded.shape[1] // _VALUES, _VALUES * bits), dtype=np.uint8)
    blocks[:, :, _bit_places(bits)] = bits_of.reshape(*blocks.shape)
    return np.packbits(blocks.reshape(rows, padded.shape[1] * bits), axis=1, bitorder="little")


def unblock_values(blocked: Bytes, dimension: int, bits: int) -> Bytes:
    """Return the numbers of `blocked_values`."""
    rows = len(blocked)
    parts = -(-dimension // _VALUES)
    blocks = np.unpackbits(blocked, axis=1, bitorder="little").reshape(rows, parts, _VALUES * bits)
    bits_of = blocks[:, :, _bit_places(bits)].reshape(rows, parts * _VALUES, bits)
    numbers = np.packbits(bits_of, axis=2, bitorder="little")[:, :, 0]
    return np.ascontiguousarray(numbers[:, :dimension])


@lru_cache(maxsize=_BYTE)
def _bit_places(bits: int) -> npt.NDArray[np.int64]:
    """Return where the bits of 64 numbers are in a block, number by number."""
    places = [_bit_place(number, bit, bits) for number in range(_VALUES) for bit in range(bits)]
    return np.array(places)


def _bit_place(number: int, bit: int, bits: int) -> int:
    run, place = divmod(number, _RUN)
    lower = bits - 1 if bits in (3, 5, 7) else bits
    if bit >= lower:
        # The highest bits of an odd number of bits are in a plane of their own.
        return _VALUES * lower + _BYTE * (place % 8) + 2 * run + place // 8
    match lower:
        case 1:
            return number
        case 2:
            return _BYTE * place + 2 * run + bit
        case 4 if bits == lower:
            return _BYTE * (8 * run + place % 8) + 4 * (place // 8) + bit
        case 4:
            return _BYTE * (_RUN * (run // 2) + place) + 4 * (run % 2) + bit
        case 6 if run == 3:  # noqa: PLR2004 - the last of four runs fills the gaps of the others
            return _BYTE * (_RUN * (bit // 2) + place) + 6 + bit % 2
        case 6:
            return _BYTE * (_RUN * run + place) + bit
        case _:
            return _BYTE * number + bit


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
class RotatedCodes(Codes):
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

    @property
    def encodes_residuals(self) -> bool:
        """Return True."""
        return True

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
        columns = [pa.field("_rabit_codes", pa.list_(pa.uint8(), self._sign_bytes))]
        columns += [pa.field(name, pa.float32()) for name in names]
        if self._further:
            width = blocked_width(self.dimension, self._further)
            columns.append(pa.field("__blocked_ex_codes", pa.list_(pa.uint8(), width)))
            columns.append(pa.field("__add_factors_ex", pa.float32()))
            columns.append(pa.field("__scale_factors_ex", pa.float32()))
        return tuple(columns)

    def metadata(self) -> Mapping[str, Any]:
        """Return the rotation and the number of bits."""
        return dict(self.settings)

    def turned(self, vectors: Matrix) -> Matrix:
        """Rotate vectors."""
        turned: Matrix = np.asarray(vectors, dtype=np.float32) @ self.rotation
        return turned

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
        result = np.empty((len(codes), self.dimension), dtype=np.float32)
        for start, values in self._chunks(codes):
            result[start : start + len(values)] = values @ self.rotation.T
        return result * lengths[:, np.newaxis]

    def stored(self, codes: CodeMatrix) -> tuple[npt.NDArray[Any], ...]:
        """Return the values of the columns for the rows of one partition."""
        numbers = self._numbers(codes)
        count = 2 if self.is_of_residuals else 3
        signs = codes[:, : self._sign_bytes]
        is_packed = bool(self.settings.get("packed"))
        columns = [pack_rows(signs) if is_packed else np.ascontiguousarray(signs).reshape(-1)]
        columns += [np.ascontiguousarray(numbers[:, i]) for i in range(count)]
        if self._further:
            steps = codes[:, self._sign_bytes : self._code_bytes]
            columns.append(block_values(steps, self._further).reshape(-1))
            columns += [np.ascontiguousarray(numbers[:, i]) for i in range(count, count + 2)]
        return tuple(columns)

    def loaded(self, values: Sequence[npt.NDArray[Any]], rows: int) -> CodeMatrix:
        """Return the codes of a partition, one row each."""
        signs = values[0].reshape(rows, self._sign_bytes)
        if self.settings.get("packed"):
            signs = unpack_rows(values[0], rows, self._sign_bytes)
        count = 2 if self.is_of_residuals else 3
        numbers = list(values[1 : 1 + count])
        steps = None
        if self._further:
            blocks = values[1 + count].reshape(rows, blocked_width(self.dimension, self._further))
            steps = unblock_values(blocks, self.dimension, self._further)
            numbers += values[2 + count :]
        return _rows(signs, steps, *numbers)

    def distances(self, queries: Matrix, loaded: CodeMatrix, center: Matrix) -> Distances:
        """Estimate distances by the products of rotated queries with the codes."""
        residuals = queries - center
        add, scale = self._estimate(loaded)
        result = self._products(residuals if self.is_of_residuals else queries, loaded)
        result *= scale
        if self.metric is Metric.DOT:
            toward = (queries @ center)[:, np.newaxis]
            if self.is_of_residuals:
                return as_distances(result + add - toward)
            # What is added belongs to a query at the center: a query takes its share of it.
            share = _ratio(toward, np.full_like(toward, center @ center))
            return as_distances(result + (1 - toward) + share * (add - 1))
        result += add
        result += np.einsum("ij,ij->i", residuals, residuals)[:, np.newaxis]
        # Of vectors of length 1, half of the squared difference is the cosine distance.
        return as_distances(result / 2 if self.metric is Metric.COSINE else result)

    @property
    def _unit(self) -> np.float32:
        """Length of the step of a value that has signs only; further bits count halves."""
        return np.float32(1 / np.sqrt(self.dimension) if self.is_of_residuals else 0.5)

    def _products(self, queries: Matrix, loaded: CodeMatrix) -> npt.NDArray[np.float32]:
        """Return the product of each query with each code."""
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        result = np.empty((len(queries), len(loaded)), dtype=np.float32)
        if not self._further and len(queries) < _MANY_QUERIES:
            tables = queries.reshape(len(queries), -1, _BYTE) @ _BITS_OF_BYTE.T
            columns = np.ascontiguousarray(loaded[:, : self._sign_bytes].T)
            for place, table in enumerate(tables):
                row = table[0].take(columns[0])
                for part, numbers in zip(table[1:], columns[1:], strict=True):
                    row += part.take(numbers)
                result[place] = (2 * row - queries[place].sum()) * self._unit
            return result
        for start, values in self._chunks(loaded):
            result[:, start : start + len(values)] = (queries @ values.T) * self._unit
        return result

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
        middle = signs.astype(np.float32) * np.float32(count) - np.float32(count - 0.5)
        return middle if steps is None else middle + steps

    def _estimate(self, codes: CodeMatrix) -> tuple[Matrix, Matrix]:
        """Return what is added to the products of all bits, and by what they are scaled."""
        numbers = self._numbers(codes)
        first = numbers.shape[1] - 2 if self._further else 0
        return numbers[:, first], numbers[:, first + 1]

    def _numbers(self, codes: CodeMatrix) -> npt.NDArray[np.float32]:
        numbers: npt.NDArray[np.float32]
        numbers = np.ascontiguousarray(codes[:, self._code_bytes :]).view(np.float32)
        return numbers

    def _scale(self, squares: Matrix, products: Matrix) -> Matrix:
        factor = np.float32(-1 if self.metric is Metric.DOT else -2)
        return _ratio(factor * squares, products)

    def _error(self, squares: Matrix, products: Matrix) -> Matrix:
        """Return a bound of the error of the estimate by signs, relative to a query's length."""
        alignment = _ratio(squares * np.float32(self.dimension / 4), products**2)
        angle = np.sqrt(np.maximum(alignment - 1, 0) / max(1, self.dimension - 1))
        error = np.sqrt(squares) * np.float32(_DEVIATIONS) * angle
        bound: Matrix = error if self.metric is Metric.DOT else 2 * error
        return bound


def _ratio(numerators: Matrix, denominators: Matrix) -> Matrix:
    zero = np.zeros_like(numerators)
    ratio: Matrix = np.divide(numerators, denominators, out=zero, where=denominators != 0)
    return ratio


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
