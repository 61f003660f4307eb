"""The table formats that Lance is compared with on Spark: their jars, sessions and tables."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

from benchmarks import tables
from benchmarks.processes import MissingPeerError
from benchmarks.spark_runs import quiet_session

_JARS = tables.ROOT / "jars"
_CATALOG = "iceberg_bench"


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A format, what a session needs for it, and the Spark that its jars are built for."""

    format: str
    title: str
    artifacts: tuple[str, ...] = ()
    conf: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Return its name and version, and the version of Spark."""
        return f"{self.title} on Spark {pyspark.__version__}"


PEERS = {
    peer.format: peer
    for peer in (
        Peer(format="parquet", title="Parquet"),
        Peer(
            format="delta",
            title="Delta Lake 4.4.0",
            artifacts=("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"),
            conf={
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": (
                    "org.apache.spark.sql.delta.catalog.DeltaCatalog"
                ),
            },
        ),
        Peer(
            format="iceberg",
            title="Iceberg 1.12.0",
            artifacts=("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",),
            conf={
                "spark.sql.extensions": (
                    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
                ),
                f"spark.sql.catalog.{_CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
                f"spark.sql.catalog.{_CATALOG}.type": "hadoop",
            },
        ),
    )
}


def session_with(peer: Peer, folder: Path) -> SparkSession:
    """Return a quiet session that knows Lance and a peer, whose tables are in a folder."""
    conf = dict(peer.conf)
    if peer.artifacts:
        conf["spark.jars"] = ",".join(str(_jar(artifact)) for artifact in peer.artifacts)
    if peer.format == "iceberg":
        conf[f"spark.sql.catalog.{_CATALOG}.warehouse"] = str(folder.resolve() / "iceberg")
    return quiet_session(**conf)


def table_name(peer: Peer, folder: Path, name: str) -> str:
    """Return how SQL names a table of a peer."""
    return f"{_CATALOG}.db.{name}" if peer.format == "iceberg" else f"delta.`{folder / name}.delta`"


def table_folder(peer: Peer, folder: Path, name: str) -> Path:
    """Return where the files of a table of a peer are."""
    return (
        folder.resolve() / "iceberg" / "db" / name
        if peer.format == "iceberg"
        else folder / f"{name}.{peer.format}"
    )


def write(peer: Peer, rows: DataFrame, folder: Path, name: str, **options: str) -> None:
    """Write a table, unless it is there."""
    if table_folder(peer, folder, name).exists():
        return
    if peer.format == "iceberg":
        writer = rows.writeTo(table_name(peer, folder, name))
        for key, value in options.items():
            writer = writer.tableProperty(key, value)
        writer.create()
    else:
        place = str(table_folder(peer, folder, name))
        rows.write.format(peer.format).options(**options).save(place)


def read(peer: Peer, spark: SparkSession, folder: Path, name: str) -> DataFrame:
    """Return the rows of a table."""
    if peer.format == "iceberg":
        return spark.table(table_name(peer, folder, name))
    return spark.read.format(peer.format).load(str(table_folder(peer, folder, name)))


def _jar(artifact: str) -> Path:
    """Return a jar, fetched through Maven once."""
    _, name, version = artifact.split(":")
    path = _JARS / f"{name}-{version}.jar"
    if path.exists():
        return path
    maven = shutil.which("mvn")
    if maven is None:
        raise MissingPeerError(f"{artifact} needs Maven, which is not installed")
    for goal in (f"get -Dartifact={artifact} -Dtransitive=false", f"copy -Dartifact={artifact}"):
        command = [maven, "-q", *f"dependency:{goal} -DoutputDirectory={_JARS}".split()]
        if subprocess.run(command, check=False, capture_output=True).returncode:
            raise MissingPeerError(f"Maven could not fetch {artifact}")
    return path
