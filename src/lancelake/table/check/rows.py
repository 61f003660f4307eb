"""Check that every value of a version can be read, and that row counts agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lancelake.data.projection import split
from lancelake.data.text_repair import StoredText
from lancelake.engine.port import Engine
from lancelake.errors import LanceTableError, StorageUnavailableError
from lancelake.format.blobs import described
from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId
from lancelake.format.schema import Field, Schema
from lancelake.scan.execute import execute
from lancelake.scan.plan import ScanTask
from lancelake.scan.planner import plan
from lancelake.scan.request import ScanRequest
from lancelake.table.check.finding import Finding
from lancelake.table.check.subject import Subject
from lancelake.table.check.task_findings import TaskFinding, encode, run_tasks

# A column of a fragment: the field, and the files that it may come from.
Seen = set[tuple[Field, tuple[str, ...]]]

_TASK_BYTES = 128 << 20

INVALID_TEXT = "text-not-utf8"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckColumns:
    """Columns of one fragment to read, each separately."""

    columns: tuple[tuple[Field, ScanTask], ...]

    @property
    def memory_bytes(self) -> int:
        """Memory of a few batches of one column."""
        return _TASK_BYTES

    def run(self) -> bytes:
        """Read the columns and return the findings."""
        return encode(found for field, task in self.columns for found in _column(field, task))


def check_rows(subject: Subject, seen: Seen, engine: Engine | None = None) -> Iterator[Finding]:
    """Decode each column of each fragment separately, except those in `seen`."""
    wanted: dict[FragmentId, list[tuple[Field, ScanTask]]] = {}
    for field in subject.schema.fields:
        request = ScanRequest(columns=(field.name,), include_deleted_rows=True)
        try:
            scan = plan(subject.snapshot, request)
        except StorageUnavailableError:
            raise
        except LanceTableError as error:
            message = f"column {field.name!r} cannot be read: {error.problem}"
            yield subject.error("column-unreadable", message)
            continue
        for task in scan.tasks:
            key = (field, tuple(file.path for file in task.fragment.files))
            if key not in seen:
                seen.add(key)
                wanted.setdefault(task.fragment.id, []).append((field, task))
    tasks = tuple(CheckColumns(columns=tuple(columns)) for columns in wanted.values())
    yield from run_tasks(subject, "values", tasks, engine)


def _column(field: Field, task: ScanTask) -> Iterator[TaskFinding]:
    fragment = task.fragment
    rows = nulls = 0
    try:
        for batch in execute(task):
            rows += batch.num_rows
            nulls += forbidden_nulls(batch.column(0), described(field))
        if nulls and fragment.deletion_file is not None:
            nulls = _nulls_in_live_rows(field, task)
    except StorageUnavailableError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  # the codec panics on some damage
        yield _invalid_text(field, task) or _unreadable(field, fragment, error)
        return
    if fragment.physical_rows not in (None, rows):
        message = (
            f"column {field.name!r} of fragment {fragment.id} has {rows} rows, "
            f"the manifest says {fragment.physical_rows}"
        )
        yield TaskFinding(
            code="row-count",
            message=message,
            path=_path(fragment),
            fragment=fragment.id,
            column=field.name,
        )
    if nulls:
        message = (
            f"column {field.name!r} of fragment {fragment.id} has {nulls} nulls but is not nullable"
        )
        yield TaskFinding(
            code="null-forbidden",
            message=message,
            path=_path(fragment),
            fragment=fragment.id,
            column=field.name,
        )


def _nulls_in_live_rows(field: Field, task: ScanTask) -> int:
    """Count the nulls again without deleted rows: a rewritten column has nulls in their place."""
    live = replace(task, spec=replace(task.spec, include_deleted_rows=False))
    return sum(forbidden_nulls(batch.column(0), described(field)) for batch in execute(live))


def _invalid_text(field: Field, task: ScanTask) -> TaskFinding | None:
    """Return a finding about invalid UTF-8; None if a column is unreadable for another reason."""
    fragment, spec = task.fragment, task.spec
    column = StoredText(files=spec.files, manifest=spec.manifest_at, fragment=fragment, field=field)
    try:
        paths = column.invalid_paths()
    except StorageUnavailableError:
        raise
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException:  # noqa: BLE001  # the codec panics on some damage
        return None
    if not paths:
        return None
    message = (
        f"column {field.name!r} of fragment {fragment.id} has strings that are not UTF-8, "
        f"so that none of its values can be read: {', '.join(paths)}"
    )
    return TaskFinding(
        code=INVALID_TEXT,
        message=message,
        path=_text_file(fragment, field),
        hint="Replace the invalid bytes with `lancelake repair --replace-invalid-utf8 --apply`.",
        fragment=fragment.id,
        column=field.name,
    )


def _unreadable(field: Field, fragment: Fragment, error: BaseException) -> TaskFinding:
    message = f"column {field.name!r} of fragment {fragment.id} cannot be read: {_reason(error)}"
    return TaskFinding(
        code="column-unreadable",
        message=message,
        path=_path(fragment),
        fragment=fragment.id,
        column=field.name,
    )


def forbidden_nulls(array: pa.Array, field: Field) -> int:
    """Count the nulls, at any depth, of fields that are not nullable."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    found = 0 if field.nullable else int(array.null_count)
    if pa.types.is_struct(array.type) and len(field.children) == array.type.num_fields:
        # Children of a null struct do not count.
        there = array.filter(array.is_valid())
        members = (there.field(i) for i in range(array.type.num_fields))
        return found + sum(map(forbidden_nulls, members, field.children))
    if pa.types.is_map(array.type) and field.children:
        keys, items = array.keys, array.items
        parts = field.children[0].children
        return found + sum(map(forbidden_nulls, (keys, items), parts))
    if _is_list(array.type) and len(field.children) == 1:
        return found + forbidden_nulls(pc.list_flatten(array), field.children[0])
    return found


def _is_list(dtype: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype)
    )


def _reason(error: BaseException) -> str:
    return error.problem if isinstance(error, LanceTableError) else str(error)


def _text_file(fragment: Fragment, field: Field) -> str | None:
    """Return the file of a column; None if there are several."""
    parts = split(fragment, Schema(fields=(field,)))
    return parts[0].file.path if len(parts) == 1 else None


def _path(fragment: Fragment) -> str | None:
    return fragment.files[0].path if len(fragment.files) == 1 else None
