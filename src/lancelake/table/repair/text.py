"""Replacement of invalid UTF-8 in a new data file of the column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from lancelake.clock import Ids
from lancelake.commit.snapshot import Snapshot
from lancelake.data.text_repair import StoredText
from lancelake.errors import LanceTableError
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.schema import Field
from lancelake.table.check.finding import Finding
from lancelake.table.check.rows import INVALID_TEXT
from lancelake.table.repair.context import RepairContext
from lancelake.table.repair.draft import Draft, TextReplacement


def replace_invalid_text(case: RepairContext) -> Draft:
    """Plan to rewrite columns without invalid UTF-8, if the options request it."""
    if not case.options.replace_invalid_utf8 or INVALID_TEXT not in case.codes:
        return case.draft
    planned = [each for each in _replacements(case) if each not in case.draft.text]
    kept = tuple(i for i in case.draft.indices if not _is_built_from(case, i, planned))
    dropped = (
        f"index {index.name!r}: a segment is dropped: it was built from strings that are not "
        "UTF-8; build it again"
        for index in case.draft.indices
        if index not in kept
    )
    written = (
        f"fragment {each.fragment_id}: column {each.column!r} is rewritten, with U+FFFD in "
        "place of bytes that are not UTF-8"
        for each in planned
    )
    return replace(
        case.draft,
        text=(*case.draft.text, *planned),
        indices=kept,
        steps=(*case.draft.steps, *dropped, *written),
    )


def is_replaced(finding: Finding, draft: Draft) -> bool:
    """Whether a draft replaces the strings of a finding."""
    if finding.code != INVALID_TEXT:
        return False
    return any((finding.fragment, finding.column) == (r.fragment_id, r.column) for r in draft.text)


def with_replaced_text(head: Snapshot, draft: Draft, ids: Ids) -> Draft:
    """Write the columns of a draft, and return it with their files."""
    fragments = {fragment.id: fragment for fragment in draft.fragments}
    changed: dict[FragmentId, Fragment] = {}
    for each in draft.text:
        fragment = changed.get(each.fragment_id) or fragments.get(each.fragment_id)
        # The fragment may have been dropped because of a lost file.
        if fragment is not None:
            (field,) = head.manifest.schema.select((each.column,)).fields
            column = StoredText(
                files=head.files, manifest=head.manifest_at, fragment=fragment, field=field
            )
            changed[fragment.id] = column.replaced(head.manifest.data_version, ids)
    return replace(draft.with_fragments(changed.values(), ()), text=())


def _replacements(case: RepairContext) -> Iterator[TextReplacement]:
    fields = {field.name: field for field in case.subject.schema.fields}
    for finding in case.found:
        field = fields.get(finding.column or "")
        if finding.code != INVALID_TEXT or finding.fragment is None or field is None:
            continue
        if not _has_blobs(field):
            yield TextReplacement(fragment_id=FragmentId(finding.fragment), column=field.name)


def _has_blobs(field: Field) -> bool:
    """Whether values are stored outside the column, so that it cannot be written alone."""
    return any(node.is_blob_v1 or node.is_blob_v2 for node in field.walk())


def _is_built_from(
    case: RepairContext, index: IndexMetadata, planned: Iterable[TextReplacement]
) -> bool:
    """Whether an index holds values of the columns, which cannot be read from its files either."""
    fields = {field.name: field for field in case.subject.schema.fields}
    try:
        covered = index.fragments()
    except LanceTableError:
        # Another repair drops it.
        return False
    return covered is not None and any(
        each.fragment_id in covered
        and any(node.id in index.fields for node in fields[each.column].walk())
        for each in planned
    )
