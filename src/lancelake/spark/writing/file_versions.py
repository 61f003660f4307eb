"""Choose the data file version for the columns of a new table."""

from __future__ import annotations

from lancelake.format import file_version
from lancelake.format.file_version import FileVersion
from lancelake.format.schema import Schema


def suitable(schema: Schema) -> FileVersion:
    """Return the default version, or a newer one if the default does not support the columns."""
    has_maps = any(node.logical_type == "map" for node in schema.walk())
    return FileVersion.V2_2 if has_maps else file_version.DEFAULT
