"""Building of the next version from a transaction."""

from __future__ import annotations

from dataclasses import replace

from lancelake.errors import InvalidRequestError
from lancelake.format import flags, names
from lancelake.format import operations as ops
from lancelake.format.file_version import DEFAULT
from lancelake.format.flags import FeatureFlags
from lancelake.format.ids import DETACHED_BIT, FragmentId, Version
from lancelake.format.manifest import Manifest
from lancelake.format.schema import Schema
from lancelake.format.transaction import Transaction
from lancelake.txn import cloning, features, fragments, migrations, validate
from lancelake.txn.options import BuildOptions
from lancelake.txn.registry import rules_of
from lancelake.txn.rules import VersionTarget
from lancelake.txn.state import TableState

__all__ = ["BuildOptions", "clone", "create", "next_state"]


def create(transaction: Transaction, options: BuildOptions) -> TableState:
    """Build version 1 of a table that does not exist yet."""
    if not isinstance(transaction.operation, ops.Overwrite):
        kind = type(transaction.operation).__name__
        msg = f"{kind} cannot create a table; only Overwrite and Clone can"
        raise InvalidRequestError(msg, operation=kind)
    return next_state(transaction, _nothing(options), options)


def next_state(
    transaction: Transaction,
    head: TableState,
    options: BuildOptions,
    *,
    restored: TableState | None = None,
) -> TableState:
    """Build the version after `head`; `restored` is the version that a Restore refers to."""
    flags.ensure_writable(head.manifest.writer_feature_flags)
    target = VersionTarget(
        version=options.version or _next_version(head.manifest),
        transaction_uuid=transaction.uuid,
        options=options,
        restored=restored,
    )
    corrected = migrations.completed(options.choices.corrections.applied(head), options.facts)
    operation = transaction.operation
    after = rules_of(operation).apply(corrected, target)
    if not isinstance(operation, ops.Restore):
        after = _ordered(migrations.with_counts(after, options.facts))
        after = migrations.repaired(after, before=head)
        # A restored version keeps its writer: readers correct known defects of writers.
        after = replace(after, manifest=replace(after.manifest, writer_version=options.writer))
    finished = _finished(after, transaction, target)
    validate.ensure_sound(finished, before=head)
    return finished


def clone(
    transaction: Transaction, source: TableState, source_uri: str, options: BuildOptions
) -> TableState:
    """Build the first version of a clone of `source`."""
    operation = transaction.operation
    if not isinstance(operation, ops.Clone):
        kind = type(operation).__name__
        raise InvalidRequestError(f"{kind} does not clone a table", operation=kind)
    flags.ensure_writable(source.manifest.writer_feature_flags)
    copied = cloning.copied(operation, source, source_uri)
    authored = replace(copied, manifest=replace(copied.manifest, writer_version=options.writer))
    target = VersionTarget(
        version=options.version or source.manifest.version,
        transaction_uuid=transaction.uuid,
        options=options,
    )
    return _finished(authored, transaction, target)


def _next_version(manifest: Manifest) -> Version:
    """Return the next version number; numbers from `DETACHED_BIT` on are detached versions."""
    after = manifest.version + 1
    if after >= DETACHED_BIT:
        raise InvalidRequestError(
            f"the table has no version numbers left: the newest is {manifest.version}",
            action="Write its rows to another table.",
        )
    return Version(after)


def _nothing(options: BuildOptions) -> TableState:
    stable = int(FeatureFlags.STABLE_ROW_IDS) if options.choices.enable_stable_row_ids else 0
    manifest = Manifest(
        schema=Schema(fields=()),
        fragments=(),
        version=Version(0),
        data_version=options.choices.data_version or DEFAULT,
        reader_feature_flags=stable,
        writer_feature_flags=stable,
    )
    return TableState(manifest=manifest)


def _ordered(state: TableState) -> TableState:
    listed = state.fragments
    if any(t.may_have_tombstones for t in listed.traits()):
        listed = listed.mapped(fragments.without_dead_files)
    return replace(state, manifest=replace(state.manifest, fragments=listed.ordered()))


def _finished(state: TableState, transaction: Transaction, target: VersionTarget) -> TableState:
    options, manifest = target.options, state.manifest
    ids = list(state.fragments.ids)
    if manifest.max_fragment_id is not None:
        ids.append(FragmentId(manifest.max_fragment_id))
    file = _file_name(transaction) if options.has_transaction_file else ""
    stamped = replace(
        manifest,
        version=target.version,
        timestamp_ns=options.timestamp_ns,
        tag=transaction.tag,
        transaction_file=file,
        max_fragment_id=max(ids, default=None),
    )
    flagged = features.flagged(stamped, has_transaction_file=options.has_transaction_file)
    return replace(state, manifest=flagged)


def _file_name(transaction: Transaction) -> str:
    return names.transaction_file_name(transaction.read_version, transaction.uuid)
