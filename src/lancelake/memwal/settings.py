"""Settings of writers: those recorded for all writers of a table, and those of one writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lancelake.errors import CorruptTableError, InvalidRequestError
from lancelake.memwal.writer_options import WriterOptions

_DEFAULTS = WriterOptions()
# All settings that official releases record, with their defaults. Those without an option here
# tune official Lance; writes are always durable.
RECORDED: Mapping[str, str] = {
    "backpressure_log_interval_ms": "30000",
    "durable_write": "true",
    "enable_memtable": "true",
    "manifest_scan_batch_size": "2",
    "max_memtable_batches": str(_DEFAULTS.max_memtable_batches),
    "max_memtable_rows": str(_DEFAULTS.max_memtable_rows),
    "max_memtable_size": str(_DEFAULTS.max_memtable_bytes),
    "max_unflushed_memtable_bytes": str(_DEFAULTS.max_unflushed_bytes),
    "max_wal_buffer_size": "10485760",
    "max_wal_flush_interval_ms": "100",
    "max_wal_persist_retries": "3",
    "stats_log_interval_ms": "60000",
    "wal_persist_retry_base_delay_ms": "50",
}
_OPTIONS = {
    "max_memtable_batches": "max_memtable_batches",
    "max_memtable_rows": "max_memtable_rows",
    "max_memtable_size": "max_memtable_bytes",
    "max_unflushed_memtable_bytes": "max_unflushed_bytes",
}


def recorded(given: Mapping[str, int | bool]) -> dict[str, str]:
    """Return the settings to record for a table: all of them as soon as one is given."""
    if not given:
        return {}
    writer_options({}, given)
    return {**RECORDED, **{name: str(value).lower() for name, value in given.items()}}


def writer_options(stored: Mapping[str, str], given: Mapping[str, int | bool]) -> WriterOptions:
    """Return the options of a writer: its own settings, then those of the table."""
    unknown = [name for name in given if name not in RECORDED]
    if unknown:
        raise InvalidRequestError(f"a writer has no setting {unknown[0]}", setting=unknown[0])
    chosen: dict[str, Any] = {}
    for name, option in _OPTIONS.items():
        if name in given:
            chosen[option] = int(given[name])
        elif name in stored:
            chosen[option] = _number(name, stored[name])
    return WriterOptions(**chosen)


def _number(name: str, text: str) -> int:
    if not text.isdecimal():
        raise CorruptTableError(f"the MemWAL has the invalid setting {name}={text!r}", setting=name)
    return int(text)
