"""Running of the examples in docstrings, and the tables that they start from."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

import lancelake.pylance as lance

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
KEY = pa.field("id", pa.int64(), nullable=False)
PEOPLE = pa.table(
    {"id": [1, 2, 3], "name": ["ada", "bob", "cy"], "score": [1.5, 2.5, 3.5]},
    schema=pa.schema([KEY, ("name", pa.string()), ("score", pa.float64())]),
)
VECTORS = pa.FixedSizeListArray.from_arrays(pa.array([1, 0, 0, 1, 1, 1], pa.float32()), 2)
DOCUMENTS = pa.table(
    {"id": [1, 2, 3], "text": ["red fox", "blue whale", "red panda"], "vector": VECTORS},
    schema=pa.schema([KEY, ("text", pa.string()), ("vector", VECTORS.type)]),
)


def public_members(classes: Iterable[type]) -> Iterator[tuple[str, Any]]:
    """Yield classes and their public methods and properties that this package defines."""
    for cls in classes:
        yield cls.__name__, cls
        for name in dir(cls):
            owner = next((each for each in cls.__mro__ if name in vars(each)), cls)
            if not name.startswith("_") and owner.__module__.startswith("lancelake"):
                yield f"{cls.__name__}.{name}", inspect.getattr_static(cls, name)


def text_of(value: Any) -> str:
    """Return the docstring of a method, a property, a function or a class."""
    return inspect.getdoc(getattr(value, "__func__", value)) or ""


def arguments_of(value: Any) -> list[str]:
    """Return the names of the arguments of a method or a function; none for other values."""
    call = getattr(value, "__func__", value)
    if inspect.isclass(call) or not callable(call):
        return []
    return [name for name in inspect.signature(call).parameters if name not in {"self", "cls"}]


def run_examples(name: str, value: Any, names: dict[str, Any]) -> None:
    """Run the examples of a docstring, and compare what they print."""
    found = doctest.DocTestParser().get_doctest(text_of(value), names, name, name, 0)
    printed: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(found, out=printed.append)
    assert not printed, "".join(printed)


def embedded_names() -> dict[str, Any]:
    """Return what the examples of the embedded API start from, in the current folder."""
    return {
        "lance": lance,
        "pa": pa,
        "ds": lance.write_dataset(PEOPLE, "people.lance", enable_stable_row_ids=True),
        "docs": lance.write_dataset(DOCUMENTS, "docs.lance"),
    }
