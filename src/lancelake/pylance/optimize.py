"""Compaction, in one call or in steps that can run in other processes."""

from __future__ import annotations

import json as json_text
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, TypedDict

from lancelake.core.table import Table
from lancelake.core.values.metadata import FragmentId, Snapshot
from lancelake.core.values.reads import Ordering
from lancelake.core.values.reports import CompactionCounts as Counted
from lancelake.core.values.reports import CompactionRun, Rewritten, rewritten
from lancelake.core.values.reports import options as core_options
from lancelake.core.values.reports import plan as planning
from lancelake.core.values.versions import AtVersion
from lancelake.errors import InvalidRequestError, suggestion
from lancelake.pylance._values.fragment_metadata import (
    FragmentMetadata,
    from_fragment,
    to_fragment,
)
from lancelake.pylance._values.opened import ColumnOrdering, OpenedDataset

Json = Any  # whatever `json` can carry
SortKeys = str | ColumnOrdering | Sequence[str | ColumnOrdering]

# Options of official Lance that are ignored here.
_WITHOUT_EFFECT = frozenset({"io_buffer_size", "binary_copy_read_batch_bytes"})


class CompactionOptions(TypedDict, total=False):
    """Options for compaction; those not set are taken from the table's config.

    The last four are Lancelake's own.
    """

    target_rows_per_fragment: int | None
    max_rows_per_group: int | None
    max_bytes_per_file: int | None
    materialize_deletions: bool | None
    materialize_deletions_threshold: float | None
    num_threads: int | None
    batch_size: int | None
    io_buffer_size: int | None
    compaction_mode: Literal["reencode", "try_binary_copy", "force_binary_copy"] | None
    binary_copy_read_batch_bytes: int | None
    defer_index_remap: bool | None
    max_source_fragments: int | None
    max_source_rows: int | None
    max_source_bytes: int | None
    excluded_fragment_ids: list[int] | None
    data_storage_version: str | None
    target_bytes_per_fragment: int | None
    settled_bytes: int | None
    sort_by: SortKeys | None
    z_order_by: str | Sequence[str] | None


@dataclass
class CompactionMetrics:
    """Numbers of fragments and files removed and added; files include deletion files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


@dataclass(repr=False)
class RewriteResult:
    """Result of a task, to be committed together with others."""

    read_version: int
    original_fragments: list[FragmentMetadata]
    new_fragments: list[FragmentMetadata]
    _is_sorted: bool = False

    def __repr__(self) -> str:
        return (
            f"RewriteResult(read_version={self.read_version}, "
            f"new_fragments={self.new_fragments}, old_fragments={self.original_fragments})"
        )

    @property
    def metrics(self) -> CompactionMetrics:
        """Numbers of fragments and files removed and added."""
        return _metrics(Counted.of([_to_rewritten(self)]))

    def json(self) -> str:
        """Return the result as text."""
        body = {
            "metrics": asdict(self.metrics),
            "new_fragments": [f.to_json() for f in self.new_fragments],
            "read_version": self.read_version,
            "original_fragments": [f.to_json() for f in self.original_fragments],
            "is_sorted": self._is_sorted,
        }
        return json_text.dumps(body)

    @staticmethod
    def from_json(json: str) -> RewriteResult:
        """Parse the output of `json`."""
        body = json_text.loads(json)
        return RewriteResult(
            body["read_version"],
            _fragments(body["original_fragments"]),
            _fragments(body["new_fragments"]),
            bool(body.get("is_sorted")),
        )


@dataclass
class CompactionTask:
    """Fragments to rewrite together; it can run in another process."""

    read_version: int
    fragments: list[FragmentMetadata]
    _options: dict[str, Json]

    def execute(self, dataset: OpenedDataset) -> RewriteResult:
        """Write the rows to new files, which are not committed yet."""
        base = _at(dataset._snapshot, self.read_version)
        settings = core_options.CompactionSettings(**_to_settings(self._options))
        group = planning.group_for(base, [to_fragment(f) for f in self.fragments], settings)
        done = rewritten(group, [task.run() for task in group.tasks])
        return RewriteResult(
            self.read_version,
            [from_fragment(f) for f in done.old],
            [from_fragment(f) for f in done.new],
            done.is_sorted,
        )

    def json(self) -> str:
        """Return the task as text."""
        return json_text.dumps(
            {
                "task": {"fragments": [f.to_json() for f in self.fragments]},
                "read_version": self.read_version,
                "options": self._options,
            }
        )

    @staticmethod
    def from_json(json: str) -> CompactionTask:
        """Parse the output of `json`."""
        body = json_text.loads(json)
        fragments = _fragments(body["task"]["fragments"])
        return CompactionTask(body["read_version"], fragments, body["options"])

    def __repr__(self) -> str:
        return f"CompactionTask(read_version={self.read_version}, fragments={self.fragments})"


@dataclass
class CompactionPlan:
    """Tasks that together compact a version of a table."""

    read_version: int
    tasks: list[CompactionTask]
    _options: dict[str, Json]

    def num_tasks(self) -> int:
        """Count the tasks."""
        return len(self.tasks)

    def json(self) -> str:
        """Return the plan as text."""
        tasks = [{"fragments": [f.to_json() for f in task.fragments]} for task in self.tasks]
        body = {"tasks": tasks, "read_version": self.read_version, "options": self._options}
        return json_text.dumps(body)

    @staticmethod
    def from_json(json: str) -> CompactionPlan:
        """Parse the output of `json`."""
        body = json_text.loads(json)
        version, options = body["read_version"], body["options"]
        tasks = [
            CompactionTask(version, _fragments(task["fragments"]), options)
            for task in body["tasks"]
        ]
        return CompactionPlan(version, tasks, options)

    def __repr__(self) -> str:
        shown = f"<{len(self.tasks)} compaction tasks>"
        return f"CompactionPlan(read_version={self.read_version}, tasks={shown})"


class Compaction:
    """Compacts a table: in one call with `execute`, or with `plan`, tasks, and `commit`."""

    @staticmethod
    def execute(
        dataset: OpenedDataset, options: CompactionOptions, run: CompactionRun | None = None
    ) -> CompactionMetrics:
        """Compact, commit, and move the dataset to the new version."""
        table = dataset._table
        guarded = replace(run or CompactionRun(), choices=dataset._choices)
        settings = table.maintenance.compaction_settings(**_to_settings(options))
        done = table.maintenance.compact(settings, guarded)
        dataset._snapshot = done.snapshot
        return _metrics(done.metrics)

    @staticmethod
    def plan(dataset: OpenedDataset, options: CompactionOptions) -> CompactionPlan:
        """Choose the fragments to rewrite."""
        base = dataset._snapshot
        table = dataset._table
        settings = table.maintenance.compaction_settings(**_to_settings(options))
        planned = table.maintenance.plan_compaction(settings)
        shown = _from_options(planned.options)
        tasks = [
            CompactionTask(base.version, [from_fragment(f) for f in group.fragments], shown)
            for group in planned.groups
        ]
        return CompactionPlan(base.version, tasks, shown)

    @staticmethod
    def commit(
        dataset: OpenedDataset,
        rewrites: list[RewriteResult],
        options: CompactionOptions | None = None,
    ) -> CompactionMetrics:
        """Commit the results of tasks, and move the dataset to the new version.

        A rewrite of rows that others changed since it was planned is skipped; if none is left, the
        conflict is raised. The metrics count what was committed.
        """
        config = core_options.from_config(dataset._snapshot.manifest.config)
        moves = replace(config, **_to_settings(options or {})).defer_index_remap
        choices = dataset._choices
        done = Counted()
        for version in sorted({rewrite.read_version for rewrite in rewrites}):
            base = _at(dataset._snapshot, version)
            group = [_to_rewritten(r) for r in rewrites if r.read_version == version]
            landing = Table(base).maintenance.commit_compaction(group, choices, record_moves=moves)
            if landing.conflict is not None and not landing.landed:
                raise landing.conflict
            done += Counted.of(landing.landed)
            dataset._snapshot = landing.snapshot
        return _metrics(done)


def _at(snapshot: Snapshot, version: int) -> Snapshot:
    if snapshot.version == version:
        return snapshot
    return Table(snapshot).at(AtVersion(version)).snapshot


def _to_settings(options: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields of the core's settings that options set."""
    names = {field.name for field in fields(core_options.CompactionSettings)}
    settings: dict[str, Json] = {}
    for name, value in options.items():
        if name not in names | _WITHOUT_EFFECT:
            advice = suggestion(name, sorted(names), "compaction options")
            raise InvalidRequestError(f"Invalid compaction option: {name}", action=advice)
        if value is None or name in _WITHOUT_EFFECT:
            continue
        settings[name] = _READERS[name](value) if name in _READERS else value
    return settings


def _from_options(options: core_options.CompactionSettings) -> dict[str, Json]:
    shown: dict[str, Json] = {f.name: getattr(options, f.name) for f in fields(options)}
    mode = options.compaction_mode
    shown["compaction_mode"] = None if mode is None else mode.value
    shown["excluded_fragment_ids"] = sorted(options.excluded_fragment_ids)
    shown["sort_by"] = [asdict(ordering) for ordering in options.sort_by]
    shown["z_order_by"] = list(options.z_order_by)
    return shown


def _orderings(keys: Json) -> tuple[Ordering, ...]:
    several = [keys] if isinstance(keys, str | ColumnOrdering) else keys
    return tuple(_ordering(key) for key in several)


def _ordering(key: Json) -> Ordering:
    if isinstance(key, str):
        return Ordering(column=key)
    if isinstance(key, Mapping):
        return Ordering(**key)
    return Ordering(column=key.column_name, ascending=key.ascending, nulls_first=key.nulls_first)


def _names(columns: Json) -> tuple[str, ...]:
    return (columns,) if isinstance(columns, str) else tuple(columns)


def _ids(numbers: Json) -> frozenset[FragmentId]:
    return frozenset(FragmentId(number) for number in numbers)


_READERS: dict[str, Callable[[Json], object]] = {
    "compaction_mode": core_options.mode_named,
    "excluded_fragment_ids": _ids,
    "sort_by": _orderings,
    "z_order_by": _names,
}


def _fragments(body: list[Json]) -> list[FragmentMetadata]:
    return [FragmentMetadata.from_json(json_text.dumps(fragment)) for fragment in body]


def _to_rewritten(result: RewriteResult) -> Rewritten:
    return Rewritten(
        old=tuple(to_fragment(f) for f in result.original_fragments),
        new=tuple(to_fragment(f) for f in result.new_fragments),
        is_sorted=result._is_sorted,
    )


def _metrics(counted: Counted) -> CompactionMetrics:
    return CompactionMetrics(
        fragments_removed=counted.fragments_removed,
        fragments_added=counted.fragments_added,
        files_removed=counted.files_removed,
        files_added=counted.files_added,
    )
