"""How far has a stream read? Offsets as Spark keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lancelake.errors import InvalidRequestError
from lancelake.spark.streaming.identity import Identity


@dataclass(frozen=True, slots=True)
class Offset:
    """The first `done` parts of what a version brings have been read, and all versions before it.

    What the first version of a stream brings is all of its rows, when `is_snapshot`. Offsets are
    equal when as much was read; `identity` says of which table, where a checkpoint has it.
    """

    version: int
    done: int
    is_snapshot: bool = False
    identity: Identity | None = field(default=None, compare=False)

    @property
    def last_seen(self) -> int:
        """The newest version of which something was read, or would have been."""
        return self.version if self.is_snapshot or self.done else self.version - 1

    def to_json(self) -> dict[str, Any]:
        """Return the offset as Spark stores it."""
        read = {"version": self.version, "done": self.done, "snapshot": self.is_snapshot}
        return read if self.identity is None else {**read, **self.identity.to_json()}

    @staticmethod
    def of(stored: dict[str, Any]) -> Offset:
        """Read an offset that Spark stored."""
        try:
            return Offset(
                int(stored["version"]),
                int(stored["done"]),
                bool(stored.get("snapshot", False)),
                Identity.from_json(stored),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidRequestError(
                f"the checkpoint has an offset that is not one of a Lance stream: {stored}"
            ) from error
