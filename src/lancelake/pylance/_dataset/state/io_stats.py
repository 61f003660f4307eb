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


def _stats(counts: IoCounts) -> IOStats:
    return IOStats(
        read_iops=counts.reads,
        read_bytes=counts.bytes_read,
        write_iops=counts.writes,
        written_bytes=counts.bytes_written,
    )


class TableIo:
    """I/O on a table since an object was made, or since it was asked last."""

    def __init__(self, location: Location) -> None:
        self._meter = meter_of(location)
        self._before = self._now()

    def so_far(self) -> IOStats:
        """Return the I/O without forgetting it."""
        return _stats(self._now() - self._before)

    def taken(self) -> IOStats:
        """Return the I/O and start again."""
        now = self._now()
        before, self._before = self._before, now
        return _stats(now - before)

    def _now(self) -> IoCounts:
        requests, size_bytes = reads_so_far()
        return self._meter.counts + IoCounts(reads=requests, bytes_read=size_bytes)


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
