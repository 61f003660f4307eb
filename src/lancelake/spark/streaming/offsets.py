"""How far has a stream read? Offsets as Spark keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lancelake.errors import InvalidRequestError


@dataclass(frozen=True, slots=True, order=True)
class Offset:
    """The first `done` parts of what a version brings have been read, and all versions before it.

    What the first version of a stream brings is all of its rows, when `is_snapshot`.
    """

    version: int
    done: int
    is_snapshot: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark stores it."""
        return {"version": self.version, "done": self.done, "snapshot": self.is_snapshot}

    @staticmethod
    def of(stored: dict[str, Any]) -> Offset:
        """Read an offset that Spark stored."""
        try:
            return Offset(
                int(stored["version"]), int(stored["done"]), bool(stored.get("snapshot", False))
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidRequestError(
                f"the checkpoint has an offset that is not one of a Lance stream: {stored}"
            ) from error
