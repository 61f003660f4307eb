"""Tables in the shape of TPC-H, with its columns and, as far as its queries notice, its values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

_EPOCH = date(1970, 1, 1)
_FIRST = (date(1992, 1, 1) - _EPOCH).days
_LAST = (date(1998, 8, 2) - _EPOCH).days
_TODAY = (date(1995, 6, 17) - _EPOCH).days
_BATCH = 250_000
_MONEY = pa.decimal128(12, 2)

_REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
_NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0),
    ("FRANCE", 3), ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4),
    ("JAPAN", 2), ("JORDAN", 4), ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1),
    ("CHINA", 2), ("ROMANIA", 3), ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3),
    ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_INSTRUCTIONS = ("COLLECT COD", "DELIVER IN PERSON", "NONE", "TAKE BACK RETURN")
_CONTAINERS = [
    f"{size} {kind}"
    for size in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for kind in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
]
_TYPES = [
    f"{a} {b} {c}"
    for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
]
_COLORS = [
    "almond",
    "antique",
    "aquamarine",
    "azure",
    "beige",
    "bisque",
    "black",
    "blanched",
    "blue",
    "blush",
    "brown",
    "burlywood",
    "chartreuse",
    "chiffon",
    "chocolate",
    "coral",
    "cornflower",
    "cornsilk",
    "cream",
    "cyan",
    "dark",
    "deep",
    "dim",
    "dodger",
    "drab",
    "firebrick",
    "floral",
    "forest",
    "frosted",
    "gainsboro",
    "ghost",
    "goldenrod",
    "green",
    "grey",
    "honeydew",
    "hot",
]
_WORDS = [
    "furiously",
    "quickly",
    "carefully",
    "slyly",
    "blithely",
    "express",
    "regular",
    "special",
    "pending",
    "final",
    "ironic",
    "even",
    "bold",
    "silent",
    "deposits",
    "accounts",
    "packages",
    "requests",
    "theodolites",
    "instructions",
    "foxes",
    "pinto",
    "beans",
    "sleep",
    "wake",
    "haggle",
    "nag",
    "integrate",
    "boost",
    "among",
    "across",
    "above",
    "after",
    "against",
    "Customer",
    "Complaints",
]


def tables(scale: float) -> dict[str, Iterator[pa.RecordBatch]]:
    """Return the batches of each table at a scale factor."""
    counts = {"part": 200_000, "supplier": 10_000, "customer": 150_000, "orders": 1_500_000}
    sizes = {name: int(count * scale) for name, count in counts.items()}
    return {
        "region": iter([_region()]),
        "nation": iter([_nation()]),
        "supplier": _batched(_supplier, sizes["supplier"], sizes),
        "customer": _batched(_customer, sizes["customer"], sizes),
        "part": _batched(_part, sizes["part"], sizes),
        "partsupp": _batched(_partsupp, sizes["part"] * 4, sizes),
        "orders": _batched(_orders, sizes["orders"], sizes),
        "lineitem": _batched(_lineitem, sizes["orders"] * 4, sizes),
    }


def _batched(make: Any, rows: int, sizes: dict[str, int]) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _BATCH):
        keys = np.arange(start, min(start + _BATCH, rows), dtype=np.int64)
        yield make(keys, np.random.default_rng([start, len(make.__name__)]), sizes)


def _region() -> pa.RecordBatch:
    keys = pa.array(range(5), pa.int64())
    return pa.record_batch({"r_regionkey": keys, "r_name": _REGIONS, "r_comment": _REGIONS})


def _nation() -> pa.RecordBatch:
    names = [name for name, _ in _NATIONS]
    return pa.record_batch(
        {
            "n_nationkey": pa.array(range(25), pa.int64()),
            "n_name": names,
            "n_regionkey": pa.array([region for _, region in _NATIONS], pa.int64()),
            "n_comment": names,
        }
    )


def _supplier(keys: np.ndarray, rng: np.random.Generator, _: dict[str, int]) -> pa.RecordBatch:
    nations = rng.integers(0, 25, len(keys))
    return pa.record_batch(
        {
            "s_suppkey": keys + 1,
            "s_name": [f"Supplier#{key + 1:09d}" for key in keys],
            "s_address": _texts(rng, len(keys), 2),
            "s_nationkey": nations,
            "s_phone": _phones(rng, nations),
            "s_acctbal": _money(rng.integers(-99_999, 999_999, len(keys))),
            "s_comment": _texts(rng, len(keys), 6),
        }
    )


def _customer(keys: np.ndarray, rng: np.random.Generator, _: dict[str, int]) -> pa.RecordBatch:
    nations = rng.integers(0, 25, len(keys))
    return pa.record_batch(
        {
            "c_custkey": keys + 1,
            "c_name": [f"Customer#{key + 1:09d}" for key in keys],
            "c_address": _texts(rng, len(keys), 2),
            "c_nationkey": nations,
            "c_phone": _phones(rng, nations),
            "c_acctbal": _money(rng.integers(-99_999, 999_999, len(keys))),
            "c_mktsegment": _chosen(rng, _SEGMENTS, len(keys)),
            "c_comment": _texts(rng, len(keys), 7),
        }
    )


def _part(keys: np.ndarray, rng: np.random.Generator, _: dict[str, int]) -> pa.RecordBatch:
    count = len(keys)
    brands = [f"Brand#{m}{n}" for m in range(1, 6) for n in range(1, 6)]
    names = zip(*(_chosen(rng, _COLORS, count).to_pylist() for _ in range(5)), strict=True)
    return pa.record_batch(
        {
            "p_partkey": keys + 1,
            "p_name": [" ".join(words) for words in names],
            "p_mfgr": _chosen(rng, [f"Manufacturer#{m}" for m in range(1, 6)], count),
            "p_brand": _chosen(rng, brands, count),
            "p_type": _chosen(rng, _TYPES, count),
            "p_size": pa.array(rng.integers(1, 51, count), pa.int32()),
            "p_container": _chosen(rng, _CONTAINERS, count),
            "p_retailprice": _money(_prices(keys + 1)),
            "p_comment": _texts(rng, count, 2),
        }
    )


def _partsupp(keys: np.ndarray, rng: np.random.Generator, sizes: dict[str, int]) -> pa.RecordBatch:
    parts = keys // 4 + 1
    return pa.record_batch(
        {
            "ps_partkey": parts,
            "ps_suppkey": _suppliers(parts, keys % 4, sizes["supplier"]),
            "ps_availqty": pa.array(rng.integers(1, 10_000, len(keys)), pa.int32()),
            "ps_supplycost": _money(rng.integers(100, 100_000, len(keys))),
            "ps_comment": _texts(rng, len(keys), 12),
        }
    )


def _orders(keys: np.ndarray, rng: np.random.Generator, sizes: dict[str, int]) -> pa.RecordBatch:
    days = _order_days(keys)
    # A third of the customers have no orders.
    customers = rng.integers(0, sizes["customer"] // 3, len(keys)) * 3 + rng.integers(1, 3)
    status = np.where(days < _TODAY - 121, "F", np.where(days > _TODAY, "O", "P"))
    return pa.record_batch(
        {
            "o_orderkey": keys + 1,
            "o_custkey": customers,
            "o_orderstatus": status.tolist(),
            "o_totalprice": _money(rng.integers(85_000, 55_000_000, len(keys))),
            "o_orderdate": _dates(days),
            "o_orderpriority": _chosen(rng, _PRIORITIES, len(keys)),
            "o_clerk": [f"Clerk#{n:09d}" for n in rng.integers(1, 1001, len(keys))],
            "o_shippriority": pa.array(np.zeros(len(keys)), pa.int32()),
            "o_comment": _texts(rng, len(keys), 5),
        }
    )


def _lineitem(keys: np.ndarray, rng: np.random.Generator, sizes: dict[str, int]) -> pa.RecordBatch:
    count, orders = len(keys), keys // 4
    # Orders have one to seven lines, four on average.
    lines = (orders * 2_654_435_761 >> 8) % 7 + 1
    position = keys % 4 + np.where(keys % 4 < lines, 0, 4)
    orders = np.where(position < 4, orders, np.maximum(orders - 1, 0))
    parts = rng.integers(1, sizes["part"] + 1, count)
    quantity = rng.integers(1, 51, count)
    ordered = _order_days(orders)
    shipped = ordered + rng.integers(1, 122, count)
    received = shipped + rng.integers(1, 31, count)
    returned = np.where(received > _TODAY, "N", np.where(rng.random(count) < 0.5, "R", "A"))
    return pa.record_batch(
        {
            "l_orderkey": orders + 1,
            "l_partkey": parts,
            "l_suppkey": _suppliers(parts, rng.integers(0, 4, count), sizes["supplier"]),
            "l_linenumber": pa.array(position + 1, pa.int32()),
            "l_quantity": _money(quantity * 100),
            "l_extendedprice": _money(quantity * _prices(parts)),
            "l_discount": _money(rng.integers(0, 11, count)),
            "l_tax": _money(rng.integers(0, 9, count)),
            "l_returnflag": returned.tolist(),
            "l_linestatus": np.where(shipped > _TODAY, "O", "F").tolist(),
            "l_shipdate": _dates(shipped),
            "l_commitdate": _dates(ordered + rng.integers(30, 91, count)),
            "l_receiptdate": _dates(received),
            "l_shipinstruct": _chosen(rng, _INSTRUCTIONS, count),
            "l_shipmode": _chosen(rng, _MODES, count),
            "l_comment": _texts(rng, count, 3),
        }
    )


def _suppliers(parts: np.ndarray, number: np.ndarray, count: int) -> np.ndarray:
    """Return one of the four suppliers of each part."""
    return (parts + number * (count // 4 + (parts - 1) // count)) % count + 1


def _order_days(orders: np.ndarray) -> np.ndarray:
    return _FIRST + (orders * 2_654_435_761 >> 4) % (_LAST - _FIRST)


def _prices(parts: np.ndarray) -> np.ndarray:
    return 90_000 + (parts // 10) % 20_001 + 100 * (parts % 1000)


def _money(cents: np.ndarray) -> pa.Array:
    # The bytes of a decimal are a number of 128 bits.
    halves = np.empty((len(cents), 2), np.int64)
    halves[:, 0] = cents
    halves[:, 1] = np.where(cents < 0, -1, 0)
    return pa.Array.from_buffers(_MONEY, len(cents), [None, pa.py_buffer(halves.tobytes())])


def _dates(days: np.ndarray) -> pa.Array:
    return pa.array(days.astype(np.int32), pa.int32()).cast(pa.date32())


def _chosen(rng: np.random.Generator, values: Sequence[str], count: int) -> pa.Array:
    codes = pa.array(rng.integers(0, len(values), count), pa.int32())
    return pa.array(values, pa.string()).take(codes)


def _texts(rng: np.random.Generator, count: int, words: int) -> pa.Array:
    parts = [_chosen(rng, _WORDS, count) for _ in range(words)]
    return pa.compute.binary_join_element_wise(*parts, " ")


def _phones(rng: np.random.Generator, nations: np.ndarray) -> list[str]:
    numbers = rng.integers(0, 10_000_000, len(nations))
    return [
        f"{nation + 10}-{number // 10_000:03d}-{number % 1000:03d}-{number % 10_000:04d}"
        for nation, number in zip(nations.tolist(), numbers.tolist(), strict=True)
    ]
