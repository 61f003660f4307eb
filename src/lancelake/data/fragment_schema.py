"""Schema of a fragment: the fields that its files have."""

from __future__ import annotations

from dataclasses import replace

from lancelake.data.projection import prune
from lancelake.format.fragment import Fragment
from lancelake.format.schema import Schema


def stored_schema(fragment: Fragment, schema: Schema) -> Schema:
    """Reduce a schema to the columns in a fragment's files."""
    held = {field_id for file in fragment.files for field_id in file.fields}
    pruned = (prune(field, held) for field in schema.fields)
    return replace(schema, fields=tuple(field for field in pruned if field is not None))
