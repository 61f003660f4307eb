"""Repair of row counts, row ids, versions of rows and texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from pyroaring import BitMap, BitMap64

from lancelake.commit.candidate import make_candidate
from lancelake.commit.snapshot import Snapshot
from lancelake.data.commit_ports import FilesFactsPort
from lancelake.data.fragment_reader import stored_rows
from lancelake.data.text_repair import StoredText
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format import deletion, layout, rowids
from lancelake.format.fragment import DeletionFile, DeletionFileType, Fragment, Sequenced
from lancelake.format.frozen import FrozenMap
from lancelake.format.ids import FragmentId
from lancelake.format.index_meta import IndexMetadata
from lancelake.format.rowids import UNKNOWN_VERSION, Range, VersionSequence
from lancelake.format.schema import Field
from lancelake.interrupts import pass_on
from lancelake.maintenance.check.data_files import INVALID_TEXT
from lancelake.maintenance.check.finding import FileSizes, Finding, Subject
from lancelake.maintenance.check.one_version import VersionChecks
from lancelake.maintenance.check.row_ids import Deletions, Loaded
from lancelake.maintenance.repair.draft import (
    Draft,
    DraftChange,
    RepairContext,
    TextReplacement,
    changes,
)
from lancelake.storage.table_files import FileAt
from lancelake.table.publish import WRITER, new_transaction
from lancelake.txn import migrations
from lancelake.txn.build import next_state
from lancelake.txn.options import BuildOptions, TableState, VersionChoices

COUNTS = frozenset({"deletion-count", "deletion-range", "row-ids-length", "row-count"})


def repair_row_counts(case: RepairContext) -> Draft:
    """Count the rows of files, and of deletion files, where the manifest may be wrong."""
    if not case.codes & COUNTS:
        return case.draft
    changed, steps = [], []
    for fragment in case.subject.fragments:
        if _is_suspect(case, fragment):
            rows = _stored(case, fragment)
            if rows not in (None, fragment.physical_rows):
                changed.append(replace(fragment, physical_rows=rows))
                steps.append(f"fragment {fragment.id}: {rows} rows, not {fragment.physical_rows}")
    return case.draft.with_fragments(changed, steps)


def repair_deletions(case: RepairContext) -> Draft:
    """Correct the counts of deletion files, and remove rows that do not exist from them."""
    if not case.codes & {"deletion-count", "deletion-range"}:
        return case.draft
    changed: list[Fragment] = []
    steps: list[str] = []
    files: dict[str, bytes] = dict(case.draft.files)
    for fragment in case.subject.fragments:
        rows = case.deletions.of(case.subject, fragment)
        entry = fragment.deletion_file
        if rows is None or entry is None:
            continue
        there = _existing(rows, fragment.physical_rows)
        if len(there) < len(rows):
            entry = _rewritten(case, fragment, there, files)
        elif entry.num_deleted_rows not in (None, len(rows)):
            entry = replace(entry, num_deleted_rows=len(rows))
        if entry != fragment.deletion_file:
            changed.append(replace(fragment, deletion_file=entry))
            steps.append(f"fragment {fragment.id}: {len(there)} deleted rows")
    return replace(case.draft.with_fragments(changed, steps), files=FrozenMap(files))


def _is_suspect(case: RepairContext, fragment: Fragment) -> bool:
    if case.options.reads_data:
        return True
    rows = case.deletions.of(case.subject, fragment)
    physical = fragment.physical_rows
    if physical is None or (rows and rows.max() >= physical):
        return True
    return "row-ids-length" in case.codes and fragment.row_ids is not None


def _stored(case: RepairContext, fragment: Fragment) -> int | None:
    """Count the rows of a fragment's files; None if they cannot be opened or disagree."""
    try:
        counts = set(_counts(case, fragment))
    except StorageUnavailableError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # the codec panics on some damage
        pass_on(error)
        return None
    return counts.pop() if len(counts) == 1 else None


def _counts(case: RepairContext, fragment: Fragment) -> Iterator[int]:
    for file in fragment.files:
        yield stored_rows(case.subject.snapshot.files, file)


def _existing(rows: BitMap, physical: int | None) -> BitMap:
    return rows if physical is None or not rows else rows & BitMap(range(physical))


def _rewritten(
    case: RepairContext, fragment: Fragment, rows: BitMap, files: dict[str, bytes]
) -> DeletionFile | None:
    """Plan a deletion file for these rows; None if there are no rows."""
    if not rows:
        return None
    kind = DeletionFileType.BITMAP
    unique, read = case.head.location.session.ids.random_u64(), case.head.version
    path = layout.deletion_file(
        fragment_id=fragment.id, read_version=read, unique=unique, suffix=kind.value
    )
    files[path] = deletion.encode(rows, kind)
    return DeletionFile(file_type=kind, read_version=read, id=unique, num_deleted_rows=len(rows))


def decoded(path: str, data: bytes) -> BitMap | LanceTableError:
    """Decode a planned deletion file."""
    try:
        return deletion.decode(data, DeletionFileType(path.rpartition(".")[2]))
    except LanceTableError as error:
        return error


LOST = frozenset({"row-ids-damaged", "row-ids-length"})
TWICE = "row-ids-twice"
RANGE = "row-ids-range"


def repair_row_ids(case: RepairContext) -> Draft:
    """Restore row ids from earlier versions where they are lost or belong to other rows."""
    if not case.codes & (LOST | {TWICE}):
        return case.draft
    changed, steps = [], []
    for fragment in case.subject.fragments:
        if fragment.row_ids is None or (_ids(fragment) is not None and TWICE not in case.codes):
            continue
        then = (f.row_ids for f in case.past.fragments(fragment))
        found = (replace(fragment, row_ids=ids) for ids in then if ids is not None)
        right = next((f for f in found if _ids(f) is not None), fragment)
        if right != fragment:
            changed.append(right)
            steps.append(f"fragment {fragment.id}: row ids restored from an earlier version")
    return case.draft.with_fragments(changed, steps)


def renew_row_ids(case: RepairContext) -> Draft:
    """Assign new ids to rows of fragments whose ids are lost or duplicate, if allowed."""
    if not case.options.new_row_ids or not case.codes & (LOST | {TWICE}):
        return case.draft
    first = max(case.draft.next_row_id, _highest(case) + 1)
    taken = BitMap64()
    changed, steps = [], []
    for fragment in case.subject.fragments:
        ids = _ids(fragment)
        if fragment.row_ids is None or fragment.physical_rows is None:
            continue
        if ids is not None and len(BitMap64(ids.tolist())) == len(ids):
            mine = BitMap64(ids.tolist())
            if not mine & taken:
                taken |= mine
                continue
        end = first + fragment.physical_rows
        fresh = rowids.encode_row_ids((Range(start=first, end=end),))
        changed.append(replace(fragment, row_ids=fresh))
        steps.append(f"fragment {fragment.id}: new row ids, starting at {first}")
        first = end
    return replace(case.draft.with_fragments(changed, steps), next_row_id=first)


def raise_next_row_id(case: RepairContext) -> Draft:
    """Raise the next row id above all existing ids."""
    needed = _highest(case) + 1
    if RANGE not in case.codes or needed <= case.draft.next_row_id:
        return case.draft
    step = f"next row id: {needed}, not {case.draft.next_row_id}"
    return replace(case.draft, next_row_id=needed, steps=(*case.draft.steps, step))


def _highest(case: RepairContext) -> int:
    found = (_ids(fragment) for fragment in case.subject.fragments)
    return max((int(ids.max()) for ids in found if ids is not None and len(ids)), default=-1)


def _ids(fragment: Fragment) -> np.ndarray | None:
    """Return the row ids of a fragment; None if they are unusable."""
    if not isinstance(fragment.row_ids, bytes):
        return None
    try:
        parts = rowids.decode_row_ids(fragment.row_ids)
        if fragment.physical_rows not in (None, sum(rowids.length(part) for part in parts)):
            return None
        values = [rowids.segment_values(part) for part in parts]
    except LanceTableError:
        return None
    return np.concatenate(values) if values else np.array([], dtype=np.uint64)


CODES = frozenset({"row-versions-damaged", "row-versions-length", "row-versions-range"})

Runs = tuple[tuple[int, int], ...]


def repair_row_versions(case: RepairContext) -> Draft:
    """Restore row versions from earlier versions, or else adjust them to the number of rows."""
    if not case.codes & CODES:
        return case.draft
    changed, steps = [], []
    for fragment in case.subject.fragments:
        made = _repaired(case, fragment, "created_at_versions")
        touched = _repaired(case, fragment, "last_updated_at_versions")
        if made is None and touched is None:
            continue
        changed.append(
            replace(
                fragment,
                created_at_versions=made or fragment.created_at_versions,
                last_updated_at_versions=touched or fragment.last_updated_at_versions,
            )
        )
        steps.append(f"fragment {fragment.id}: versions in which its rows were written")
    return case.draft.with_fragments(changed, steps)


def _repaired(case: RepairContext, fragment: Fragment, name: str) -> bytes | None:
    """Return the corrected sequence; None if it is valid, or unknown."""
    now: Sequenced = getattr(fragment, name)
    if not isinstance(now, bytes) or fragment.physical_rows is None:
        return None
    newest = case.head.version
    if _is_sound(now, fragment.physical_rows, newest):
        return None
    for then in case.past.fragments(fragment):
        earlier = getattr(then, name)
        if isinstance(earlier, bytes) and _is_sound(earlier, fragment.physical_rows, newest):
            return earlier
    return VersionSequence(_fitted(_runs(now) or (), fragment.physical_rows, newest)).encode()


def _is_sound(data: bytes, rows: int, newest: int) -> bool:
    runs = _runs(data)
    if runs is None or sum(count for count, _ in runs) != rows:
        return False
    return all(version <= newest for _, version in runs)


def _fitted(runs: Runs, rows: int, newest: int) -> Runs:
    """Adjust the sequence to the number of rows; unknown versions become the first version."""
    found: list[tuple[int, int]] = []
    for count, version in runs:
        fitting = min(count, rows)
        if fitting:
            found.append((fitting, min(version, newest)))
        rows -= fitting
    if rows:
        found.append((rows, found[-1][1] if found else UNKNOWN_VERSION))
    return tuple(found)


def _runs(data: bytes) -> Runs | None:
    try:
        return rowids.decode_versions(data)
    except LanceTableError:
        return None


def previewed(head: Snapshot, draft: Draft) -> Snapshot:
    """Build, in memory, the version that commits of the draft would create."""
    after = head
    for change in changes(head, draft):
        after = _next(after, change)
    return after


def planned_deletions(head: Snapshot, draft: Draft) -> Mapping[FileAt, Loaded]:
    """Return the deletion files that are planned but not yet written."""
    return {
        FileAt(root=head.location, path=path): decoded(path, data)
        for path, data in draft.files.items()
    }


def findings(
    snapshot: Snapshot, sizes: FileSizes, known: Mapping[FileAt, Loaded], *, data: bool
) -> tuple[Finding, ...]:
    """Check one version; neither it nor its transaction has to be stored."""
    checks = VersionChecks(data=data, deletions=Deletions(known))
    found = checks(Subject(snapshot, sizes))
    return without_duplicates(f for f in found if f.code != "transaction-file-missing")


def without_duplicates(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings without duplicates."""
    return tuple({(f.code, f.path, f.message): f for f in found}.values())


def _next(head: Snapshot, change: DraftChange) -> Snapshot:
    state = TableState(manifest=head.manifest, indices=head.indices)
    corrected = change.corrections.applied(state)
    facts = FilesFactsPort(root=head.location).learn(corrected, migrations.wanted(corrected))
    options = BuildOptions(
        timestamp_ns=head.manifest.timestamp_ns or 0,
        writer=WRITER,
        facts=facts,
        choices=VersionChoices(corrections=change.corrections),
    )
    mine = new_transaction(change.operation, head.version)
    after = next_state(mine, state, options)
    return make_candidate(mine, after, head.name.naming).as_snapshot(head.location)


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


def with_replaced_text(head: Snapshot, draft: Draft) -> Draft:
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
            changed[fragment.id] = column.replaced(head.manifest.data_version)
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
