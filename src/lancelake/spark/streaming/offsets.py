"""Offsets of a stream, as stored in its checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lancelake.errors import InvalidRequestError
from lancelake.spark.streaming.identity import Identity


@dataclass(frozen=True, slots=True)
class Offset:
    """The first `done` parts of a version, and all versions before it, have been read.

    If `is_snapshot`, the parts are all rows of the first version of a stream. Offsets are equal if
    the same parts were read; `identity` is that of the table, if the checkpoint records it.
    """

    version: int
    done: int
    is_snapshot: bool = False
    identity: Identity | None = field(default=None, compare=False)

    @property
    def last_seen(self) -> int:
        """The newest version that was read, at least partially."""
        return self.version if self.is_snapshot or self.done else self.version - 1

    def to_json(self) -> dict[str, Any]:
        """Return the offset as JSON for the checkpoint."""
        read = {"version": self.version, "done": self.done, "snapshot": self.is_snapshot}
        return read if self.identity is None else {**read, **self.identity.to_json()}

    @staticmethod
    def of(stored: dict[str, Any]) -> Offset:
        """Parse an offset from a checkpoint."""
        try:
            return Offset(
                int(stored["version"]),
                int(stored["done"]),
                bool(stored.get("snapshot", False)),
                Identity.from_json(stored),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidRequestError(
                f"the checkpoint has an offset that does not belong to a Lance stream: {stored}"
            ) from error
