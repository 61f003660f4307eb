"""Check the ids, names and types of the schema."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lancelake.errors import LanceTableError
from lancelake.format import primary_key
from lancelake.format.arrow_schema import storage_field
from lancelake.format.schema import Field
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject

_RENAME = "Rename the column."


def check_schema(subject: Subject) -> Iterator[Finding]:
    """Check the ids, names and types of all fields."""
    yield from _ids(subject)
    yield from _names(subject)
    yield from _types(subject)
    try:
        primary_key.ensure_valid(subject.schema)
    except LanceTableError as error:
        yield subject.warning("primary-key", error.problem, hint="Choose other key columns.")


def _ids(subject: Subject) -> Iterator[Finding]:
    counts = Counter(field.id for field in subject.schema.walk())
    for field_id, count in counts.items():
        if count > 1:
            yield subject.finding(
                subject.strict,
                "field-id-twice",
                f"{count} fields have the id {field_id}; readers cannot distinguish their columns",
            )
        if field_id < 0:
            path = subject.schema.path_of(field_id)
            yield subject.error("field-id-negative", f"field {path} has the id {field_id}")


def _names(subject: Subject) -> Iterator[Finding]:
    for field in subject.schema.fields:
        if "." in field.name:
            yield subject.error(
                "column-name-dot", f"the name of column {field.name!r} contains a dot", hint=_RENAME
            )
    for name in _repeated(subject.schema.fields):
        yield subject.error("column-name-twice", f"two columns are named {name!r}", hint=_RENAME)
    for field in subject.schema.walk():
        for name in _repeated(field.children):
            yield subject.warning(
                "field-name-twice", f"two fields of {field.name!r} are named {name!r}"
            )
        if not field.name:
            yield subject.warning(
                "field-name-empty", f"field {field.id} has no name, so it cannot be selected"
            )


def _repeated(fields: tuple[Field, ...]) -> list[str]:
    counts = Counter(field.name for field in fields)
    return [name for name, count in counts.items() if count > 1]


def _types(subject: Subject) -> Iterator[Finding]:
    for field in subject.schema.fields:
        try:
            storage_field(field)
        except LanceTableError as error:
            yield subject.error(
                "type-unknown",
                f"column {field.name!r} cannot be read: {error.problem}",
                hint="Read the other columns, or use a newer release.",
            )
