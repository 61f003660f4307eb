"""I/O statistics of a dataset, as in pylance."""

from __future__ import annotations

from dataclasses import dataclass

from lancelake.data.codec.official import reads_so_far
from lancelake.storage.io_meter import IoCounts, meter_of
from lancelake.storage.location import Location


@dataclass(frozen=True, kw_only=True)
class IOStats:
    """Numbers of I/O operations, and the bytes that they moved."""

    read_iops: int
    read_bytes: int
    write_iops: int
    written_bytes: int

    def __repr__(self) -> str:
        """Format as pylance does."""
        return (
            f"IOStats(read_iops={self.read_iops}, read_bytes={self.read_bytes}, "
            f"write_iops={self.write_iops}, write_bytes={self.written_bytes})"
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    """Counts of a table, and the requests and bytes that the codec read in this process."""

    counts: IoCounts
    codec_reads: tuple[int, int]

    def since(self, before: _Reading) -> IOStats:
        """Return the I/O after another reading."""
        added = self.counts - before.counts
        return IOStats(
            read_iops=added.reads + self.codec_reads[0] - before.codec_reads[0],
            read_bytes=added.bytes_read + self.codec_reads[1] - before.codec_reads[1],
            write_iops=added.writes,
            written_bytes=added.bytes_written,
        )


class TableIo:
    """I/O on a table since an object was made, or since it was asked last."""

    def __init__(self, location: Location) -> None:
        self._meter = meter_of(location)
        self._before = self._now()

    def so_far(self) -> IOStats:
        """Return the I/O without resetting the counts."""
        return self._now().since(self._before)

    def taken(self) -> IOStats:
        """Return the I/O and start again."""
        now = self._now()
        before, self._before = self._before, now
        return now.since(before)

    def _now(self) -> _Reading:
        return _Reading(self._meter.counts, reads_so_far())


class DatasetIo:
    """Methods of `LanceDataset` that return I/O statistics."""

    _io: TableIo

    def io_stats_snapshot(self) -> IOStats:
        """Return the I/O since the dataset was opened or since `io_stats_incremental`.

        Metadata, and data and index files that are written, are counted for this table. Reads of
        data and index files are counted for the whole process: the codec does not tell tables
        apart.

        Returns:
            The numbers of reads and writes, and of the bytes.

        Examples:
            >>> rows = ds.to_table()
            >>> ds.io_stats_snapshot().read_bytes > 0
            True
        """
        return self._io.so_far()

    def io_stats_incremental(self) -> IOStats:
        """Return the I/O of `io_stats_snapshot`, and count again from zero.

        Returns:
            The numbers of reads and writes, and of the bytes.

        Examples:
            >>> first = ds.io_stats_incremental()
            >>> ds.io_stats_incremental().read_iops
            0
        """
        return self._io.taken()
