"""How a function of the core becomes a method of `Table`: loaded late, errors named once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from lancelake.core.values import imported_names, load_name
from lancelake.errors import naming
from lancelake.storage.location import Location

if TYPE_CHECKING:
    from lancelake.commit.snapshot import Snapshot

Rest = ParamSpec("Rest")
Result = TypeVar("Result")
Subject = TypeVar("Subject")


class AtPlace(Protocol):
    """What has the root of a table or branch."""

    @property
    def location(self) -> Location:
        """The root."""


class OnSnapshot(AtPlace, Protocol):
    """What has a version of a table."""

    @property
    def snapshot(self) -> Snapshot:
        """The version."""


class Facet:
    """Operations of one subject on a version of a table."""

    __slots__ = ("snapshot",)

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    @property
    def location(self) -> Location:
        """Root of the table, or of the branch that the version is on."""
        return self.snapshot.location


Part = TypeVar("Part", bound=Facet)


class facet(Generic[Part]):  # noqa: N801  # used like a decorator
    """The operations of a subject, for the version of the table."""

    def __init__(self, kind: type[Part]) -> None:
        self._kind = kind

    def __get__(self, owner: OnSnapshot, _type: type) -> Part:
        return self._kind(owner.snapshot)


class _LateModule:
    """A module that is imported when one of its names is used.

    A program that counts rows never loads what builds indices. Type checkers see the module itself.
    """

    def __init__(self, package: str, name: str) -> None:
        self._source = (package, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(load_name(*self._source), name)


def late_modules(hub: str) -> dict[str, _LateModule]:
    """Return what a module of this package imports for type checkers, to be imported late."""
    return {name: _LateModule(*source) for name, source in imported_names(hub).items()}


class _Method(Generic[Subject, Rest, Result]):
    """A method that calls a function with what it is about.

    Errors of the core get their table and version here, and nowhere else.
    """

    def __init__(self, load: Callable[[], Callable[Concatenate[Subject, Rest], Result]]) -> None:
        self.load = load

    @cached_property
    def _function(self) -> Callable[Concatenate[Subject, Rest], Result]:
        return self.load()

    def _bound(self, subject: Subject, at: naming) -> Callable[Rest, Result]:
        function = self._function

        def run(*args: Rest.args, **kwargs: Rest.kwargs) -> Result:
            with at:
                return function(subject, *args, **kwargs)

        return run


class operation(_Method["Snapshot", Rest, Result]):  # noqa: N801  # used like a decorator
    """A method that calls a function of the core with the version."""

    @overload
    def __get__(
        self, owner: None, _kind: type
    ) -> Callable[Concatenate[Snapshot, Rest], Result]: ...

    @overload
    def __get__(self, owner: OnSnapshot, _kind: type) -> Callable[Rest, Result]: ...

    def __get__(self, owner: OnSnapshot | None, _kind: type) -> Callable[..., Result]:
        if owner is None:
            return self._function
        snapshot = owner.snapshot
        return self._bound(snapshot, naming(snapshot.location.uri, snapshot.version))


class on_line(_Method[Location, Rest, Result]):  # noqa: N801  # used like a decorator
    """A method that calls a function with the root of a table or branch, whatever the version."""

    def __get__(self, owner: AtPlace, _kind: type) -> Callable[Rest, Result]:
        return self._bound(owner.location, naming(owner.location.uri))


class on_main(_Method[Location, Rest, Result]):  # noqa: N801  # used like a decorator
    """A method that calls a function with the root of the table, where tags and branches are."""

    def __get__(self, owner: OnSnapshot, _kind: type) -> Callable[Rest, Result]:
        main = owner.snapshot.main_location
        return self._bound(main, naming(main.uri))
