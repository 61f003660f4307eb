"""Base paths of a table."""

from __future__ import annotations

from dataclasses import dataclass, field

from lancelake.errors import InvalidRequestError
from lancelake.format.bases import BasePath
from lancelake.format.ids import BaseId

_MAX_ID = (1 << 32) - 1


@dataclass(frozen=True, repr=False)
class DatasetBasePath:
    """A location outside the table's root for its files; id 0 requests the next free id."""

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None
    _unknown: bytes = field(default=b"", kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Validate the id."""
        number = self.id or 0
        if not 0 <= number <= _MAX_ID:
            raise InvalidRequestError(f"the id of a base path must be below 2**32, not {number}")
        object.__setattr__(self, "id", number)

    def __repr__(self) -> str:
        name = "None" if self.name is None else f'Some("{self.name}")'
        is_root = "true" if self.is_dataset_root else "false"
        place = f"path={self.path}, is_dataset_root={is_root}"
        return f"DatasetBasePath(id={self.id}, name={name}, {place})"


def from_base_path(base: BasePath) -> DatasetBasePath:
    """Create it from a base path of the format."""
    return DatasetBasePath(
        base.path, base.name, base.is_dataset_root, base.id, _unknown=base.unknown
    )


def to_base_path(base: DatasetBasePath) -> BasePath:
    """Return the base path of the format, including fields without a public attribute."""
    return BasePath(
        id=BaseId(base.id or 0),
        name=base.name,
        is_dataset_root=base.is_dataset_root,
        path=base.path,
        unknown=base._unknown,
    )
