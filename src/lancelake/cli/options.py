"""CommandModule of a module, the options that they share, and the parsing of these."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import timedelta
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from lancelake.cli import tables
from lancelake.cli.console import OutputFormat, RowFormat
from lancelake.core.table import Table
from lancelake.core.table_place import TablePlace
from lancelake.format.schema import comma_parts
from lancelake.format.words import parse_duration

if TYPE_CHECKING:
    from lancelake.core.values.writes import CommitChoices


def argument(metavar: str, about: str) -> Any:  # as in typer
    """Declare an argument."""
    return typer.Argument(metavar=metavar, show_default=False, help=about)


def flag(name: str, about: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(name, help=about)


def option(
    name: str, metavar: str | None, about: str, *, short: str | None = None, **more: Any
) -> Any:
    """Declare an option with a value; the text says what its default is."""
    names = (name,) if short is None else (name, short)
    return typer.Option(*names, metavar=metavar, show_default=False, help=about, **more)


Uri = Annotated[str, argument("URI", "Path or URI of the table.")]
At = Annotated[
    str | None,
    option(
        "--at",
        "WHEN",
        "A version, TAG, BRANCH:VERSION, BRANCH:, or a time such as 2026-01-31T12:00. "
        "By default, the latest version.",
        autocompletion=tables.complete_refs,
    ),
]
StorageOptions = Annotated[
    list[str] | None,
    option("--storage-option", "KEY=VALUE", "Option for the object store; repeatable.", short="-s"),
]
Output = Annotated[
    OutputFormat, typer.Option("--output", "-o", help="Output format: a readable table, or JSON.")
]
RowOutput = Annotated[
    RowFormat,
    typer.Option(
        "--output", "-o", help="Output format: a readable table, or complete values for programs."
    ),
]
MaxRows = Annotated[
    int | None,
    option(
        "--rows",
        None,
        "Maximum number of rows; 0 for all. By default, 100 in a table and all in other formats.",
        short="-n",
        min=0,
    ),
]
Columns = Annotated[
    str | None,
    option(
        "--columns",
        "A,B.C",
        "Columns, separated by commas; B.C is field C of struct B.",
        short="-c",
        autocompletion=tables.complete_columns,
    ),
]
Filter = Annotated[
    str | None, option("--filter", "SQL", "Only rows that match this condition.", short="-f")
]
NoIndex = Annotated[bool, flag("--no-index", "Scan the rows instead of using indices.")]
Metric = Annotated[
    str | None,
    option("--metric", "NAME", "l2, cosine, dot or hamming. By default, that of the index."),
]
RefineFactor = Annotated[
    int | None,
    option(
        "--refine-factor",
        "N",
        "Re-rank N * k candidates by the distances of their stored vectors.",
        min=1,
    ),
]
Message = Annotated[
    str | None, option("--message", "TEXT", "Commit message, shown by `lancelake log`.", short="-m")
]
Branch = Annotated[
    str | None,
    option(
        "--branch",
        "NAME",
        "Branch to change. By default, main.",
        autocompletion=tables.complete_branches,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTable:
    """Options that name a table."""

    uri: Uri
    options: StorageOptions = None

    @property
    def place(self) -> TablePlace:
        """The place of the table, which may not exist."""
        return tables.place_of(self.uri, self.options)

    def locate(self, uri: str) -> TablePlace:
        """Return another place, with the same storage options."""
        return tables.place_of(uri, self.options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version(NamedTable):
    """Options that name a version of a table."""

    at: At = None

    def open(self) -> Table:
        """Open the version."""
        return tables.open_at(self.place, self.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head(NamedTable):
    """Options that name the newest version of a branch."""

    branch: Branch = None

    def open(self) -> Table:
        """Open the version."""
        return tables.open_head(self.place, self.branch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Head):
    """Options of a commit to a branch."""

    message: Message = None

    @property
    def choices(self) -> CommitChoices:
        """The options of the commit."""
        # Only a commit needs this module.
        from lancelake.core.values.writes import CommitChoices  # noqa: PLC0415

        return CommitChoices(message=self.message)


# Options that the help page of each command lists last, in this order.
_LAST = ("at", "branch", "message", "options", "output")


class CommandModule:
    """The commands of a module: one, or several below a name if `about` says what they do.

    The options of a command are the parameters of its function; one whose type is a class above
    stands for the fields of that class.
    """

    def __init__(self, about: str | None = None, *, example: str | None = None) -> None:
        """Take the arguments of the example on the help page of the name."""
        self.app = typer.Typer(
            add_completion=False,
            rich_markup_mode=None,
            no_args_is_help=about is not None,
            help=about,
            epilog=example,
        )
        if about is not None:
            # Without a callback, one command would not be below the name but instead of it.
            self.app.callback()(lambda: None)

    def add(
        self, name: str | None = None, *, example: str
    ) -> Callable[[Callable[..., None]], Callable[..., None]]:
        """Add a function as a command, with the arguments of the example on its help page."""

        def add(function: Callable[..., None]) -> Callable[..., None]:
            self.app.command(name, epilog=example)(_expand(function))
            return function

        return add


def _expand(function: Callable[..., None]) -> Callable[..., None]:
    """Replace parameters that are dataclasses with their fields."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    parameters = []
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            parameters += _fields(groups[name])
        else:
            kind = Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(annotation=hints[name], kind=kind))
    parameters.sort(key=lambda each: _LAST.index(each.name) + 1 if each.name in _LAST else 0)

    @functools.wraps(function)
    def run(**values: Any) -> None:
        for name, kind in groups.items():
            values[name] = kind(**{each.name: values.pop(each.name) for each in fields(kind)})
        function(**values)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # as inspect documents
    return run


def _fields(kind: Any) -> list[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    return [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=hints[each.name],
        )
        for each in fields(kind)
    ]


def age(text: str, hint: str) -> timedelta:
    """Parse an age such as `12h`, the value of the option `hint`."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=hint) from error


def column_names(text: str | None, option: str = "--columns") -> tuple[str, ...] | None:
    """Split the value of an option at commas; a name in backticks may contain one."""
    if text is None:
        return None
    names = comma_parts(text)
    if not all(names):
        raise typer.BadParameter(
            f"{text!r} contains an empty column name", param_hint=f"'{option}'"
        )
    return names
