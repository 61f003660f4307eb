"""Opened tables, and small values that several modules share."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from functools import wraps
from inspect import getdoc, signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import pyarrow as pa

from lancelake.core.table import Table
from lancelake.core.values.metadata import Fragment, FragmentId, Snapshot
from lancelake.core.values.writes import CommitChoices, CommitLock
from lancelake.data.codec import official

Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
Taken = ParamSpec("Taken")


class OpenedDataset(Protocol):
    """A table at a version: `LanceDataset`."""

    _snapshot: Snapshot
    _lock: CommitLock | None

    @property
    def uri(self) -> str:
        """The location of the table, as the user specified it."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema."""
        ...

    @property
    def _table(self) -> Table: ...

    @property
    def _choices(self) -> CommitChoices: ...

    def _fragments(self) -> Mapping[FragmentId, Fragment]: ...


class OpenedFragment(Protocol):
    """A fragment of a version: `LanceFragment`."""

    @property
    def fragment_id(self) -> FragmentId:
        """The id of the fragment."""
        ...


def given(arguments: dict[str, Any], *, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return those of a function's `locals()` that are not None, with the names in `kwargs`."""
    every = {**arguments, **arguments.get("kwargs", {})}
    left_out = ("self", "kwargs", *without)
    return {k: v for k, v in every.items() if v is not None and k not in left_out}


def describes_as(described: Callable[..., Any]) -> Callable[[Function], Function]:
    """Complete the docstring of a function by the arguments that another one describes too."""
    entries = re.findall(r"^ {4}(\W*(\w+): .*(?:\n {8}.*)*)", getdoc(described) or "", re.MULTILINE)
    texts = {name: f"    {entry}\n" for entry, name in entries}

    def complete(function: Function) -> Function:
        own = getdoc(function) or ""
        names = signature(function).parameters
        missing = [
            texts[n] for n in names if n in texts and not re.search(rf"\n {{4}}\W*{n}: ", own)
        ]
        if "Args:\n" not in own:
            own = re.sub(
                r"^(?=(Returns|Raises|Examples):$)", "Args:\n\n", own, count=1, flags=re.MULTILINE
            )
        function.__doc__ = own.replace("Args:\n", f"Args:\n{''.join(missing)}", 1)
        return function

    return complete


def takes(
    whole: Callable[Concatenate[Any, Taken], Any],
) -> Callable[[Callable[..., Result]], Callable[Concatenate[Any, Taken], Result]]:
    """Give a method the arguments of another one, and their descriptions; it gets them by name."""
    arguments = signature(whole)

    def complete(method: Callable[..., Result]) -> Callable[Concatenate[Any, Taken], Result]:
        @wraps(method)
        def call(self: Any, *args: Taken.args, **kwargs: Taken.kwargs) -> Result:
            return method(**arguments.bind(self, *args, **kwargs).arguments)

        returned = signature(method).return_annotation
        call.__signature__ = arguments.replace(return_annotation=returned)  # type: ignore[attr-defined]  # as inspect documents
        described: Any = describes_as(whole)(call)
        return described  # type: ignore[no-any-return]  # `wraps` forgets the arguments

    return complete


@dataclass
class ColumnOrdering:
    """A sort key: a column, its direction, and the position of nulls."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


_MOST = 200


def call_text(instance: object, *values: object, **named: object) -> str:
    """Return `Class(value, name=value)`; names whose value is None are omitted."""
    parts = [_short(value) for value in values]
    parts += [f"{name}={_short(value)}" for name, value in named.items() if value is not None]
    return f"{type(instance).__name__}({', '.join(parts)})"


def version_text(instance: object, snapshot: Snapshot, **named: object) -> str:
    """Return `call_text` of something that belongs to a version of a table."""
    return call_text(instance, snapshot.location.uri, version=snapshot.version, **named)


def chosen(request: Any, base: Any = None) -> dict[str, object]:
    """Return the fields of a dataclass that differ from another one, or from their defaults."""
    names = [field.name for field in fields(request) if _is_chosen(field, request, base)]
    return {name: getattr(request, name) for name in names}


def _is_chosen(field: Field[Any], request: Any, base: Any) -> bool:
    value = getattr(request, field.name)
    default = field.default if base is None else getattr(base, field.name)
    if default is None or value is None:  # values such as arrays have no plain comparison
        return value is not default
    if default is MISSING and field.default_factory is not MISSING:
        return bool(value != field.default_factory())
    return default is MISSING or bool(value != default)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"


def bytes_read_counter() -> int:
    """Return the number of bytes of data files that were read since the process started."""
    return official.counter("bytes_read_counter")


def iops_counter() -> int:
    """Return the number of reads of data files since the process started."""
    return official.counter("iops_counter")
