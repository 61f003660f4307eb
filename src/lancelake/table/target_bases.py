"""Base paths that new data files are written to."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.errors import InvalidRequestError
from lancelake.format.bases import BasePath
from lancelake.suggest import suggestion


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBases:
    """Requested bases: by name or path, or all of them, with or without the table's root."""

    names: tuple[str, ...] = ()
    with_root: bool | None = None
    """True for the root and every base, False for every base; None selects by name."""

    def among(self, bases: tuple[BasePath, ...]) -> tuple[BasePath | None, ...]:
        """Return the locations that files are written to in turn; None is the root."""
        if self.with_root is None:
            return tuple(_named(name, bases) for name in self.names) or (None,)
        if self.names:
            raise InvalidRequestError(
                "Cannot specify target_all_bases together with target_bases", bases=self.names
            )
        every = tuple(sorted(bases, key=lambda base: base.id))
        if self.with_root:
            return (None, *every)
        if not every:
            raise InvalidRequestError(
                "target_all_bases found no registered bases, and the table's root is excluded",
                action="Register bases, or write to the root as well.",
            )
        return every


TO_ROOT = TargetBases()


def _named(name: str, bases: tuple[BasePath, ...]) -> BasePath:
    found = next((base for base in bases if name in (base.name, base.path)), None)
    if found is None:
        advice = suggestion(name, [base.name or base.path for base in bases], "bases")
        problem = f"Base reference {name!r} not found in available bases"
        raise InvalidRequestError(problem, base=name, action=advice)
    return found
