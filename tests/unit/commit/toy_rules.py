"""A few operations with simple rules, to test commits apart from the rules of tables."""

from __future__ import annotations

from dataclasses import replace

from lancelake.format.fragment import Fragment
from lancelake.format.ids import FragmentId, Version
from lancelake.format.manifest import Manifest
from lancelake.format.names import transaction_file_name
from lancelake.format.operations import (
    Append,
    Clone,
    Delete,
    Operation,
    Overwrite,
    Restore,
    UpdateConfig,
)
from lancelake.format.transaction import Transaction
from lancelake.txn.facts import MissingFacts
from lancelake.txn.options import BuildOptions
from lancelake.txn.rules import (
    AffectedRows,
    Compatible,
    Context,
    Incompatible,
    RebasePort,
    Retryable,
    Verdict,
)
from lancelake.txn.state import TableState


class ToyRules:
    """Append always fits; a key is set by one at a time; Delete is rebased; Overwrite refuses."""

    def conflicts(self, mine: Operation, theirs: Operation, context: Context) -> Verdict:
        match mine, theirs:
            case UpdateConfig(), UpdateConfig() if _keys(mine) & _keys(theirs):
                return Retryable("both set the same key")
            case (Delete(), Delete()):
                return Compatible(needs_rebase=True)
            case (Append() | Delete(), Overwrite()):
                return Incompatible("the rows are of another table")
            case _:
                return Compatible()

    def rebase(
        self,
        mine: Transaction,
        head: TableState,
        *,
        base: TableState,
        affected_rows: AffectedRows | None,
        port: RebasePort,
    ) -> Transaction | Retryable:
        assert isinstance(mine.operation, Delete)
        gone = set(mine.operation.deleted_fragment_ids) - head.fragment_ids()
        if gone:
            return Retryable("both deleted the same fragment")
        return replace(mine, read_version=head.manifest.version)

    def wanted(self, state: TableState) -> MissingFacts:
        return MissingFacts()

    def create(self, transaction: Transaction, options: BuildOptions) -> TableState:
        assert isinstance(transaction.operation, Overwrite)
        manifest = Manifest(
            schema=transaction.operation.schema,
            fragments=(),
            version=Version(0),
            data_version=options.choices.data_version or _data_version(),
        )
        return self.next_state(transaction, TableState(manifest=manifest), options)

    def clone(
        self,
        transaction: Transaction,
        source: TableState,
        source_uri: str,
        options: BuildOptions,
    ) -> TableState:
        assert isinstance(transaction.operation, Clone)
        return _stamped(source, transaction, options, source.manifest.version)

    def next_state(
        self,
        transaction: Transaction,
        head: TableState,
        options: BuildOptions,
        *,
        restored: TableState | None = None,
    ) -> TableState:
        before = head.manifest
        match transaction.operation:
            case Append(fragments=added):
                after = _appended(before, added)
            case Delete(deleted_fragment_ids=gone):
                kept = tuple(f for f in before.fragments if f.id not in gone)
                assert len(kept) + len(gone) == len(before.fragments)
                after = replace(before, fragments=kept)
            case Overwrite(fragments=added):
                after = _appended(replace(before, fragments=()), added)
            case Restore():
                assert restored is not None
                after = replace(restored.manifest, max_fragment_id=before.max_fragment_id)
            case UpdateConfig(config=update):
                assert update is not None
                entries = {k: v for k, v in update.entries.items() if v is not None}
                after = replace(before, config=type(before.config)({**before.config, **entries}))
            case other:
                raise AssertionError(other)
        version = options.version or Version(before.version + 1)
        return _stamped(TableState(manifest=after), transaction, options, version)


TOY_RULES = ToyRules()


def _keys(op: UpdateConfig) -> set[str]:
    return set(op.config.entries) if op.config else set()


def _data_version():
    from lancelake.format.file_version import FileVersion

    return FileVersion.V2_1


def _appended(before: Manifest, added: tuple[Fragment, ...]) -> Manifest:
    first = 0 if before.max_fragment_id is None else before.max_fragment_id + 1
    fresh = tuple(replace(f, id=FragmentId(first + n)) for n, f in enumerate(added))
    highest = first + len(added) - 1 if added else before.max_fragment_id
    return replace(before, fragments=(*before.fragments, *fresh), max_fragment_id=highest)


def _stamped(
    state: TableState, transaction: Transaction, options: BuildOptions, version: Version
) -> TableState:
    manifest = replace(
        state.manifest,
        version=version,
        timestamp_ns=options.timestamp_ns,
        writer_version=options.writer,
        transaction_file=transaction_file_name(transaction.read_version, transaction.uuid),
    )
    return replace(state, manifest=manifest)
