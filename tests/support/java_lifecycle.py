"""Two Spark applications in one JVM, one after the other; what became of the Java classes."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pyarrow as pa

import lancelake
from lancelake.spark import session
from lancelake.spark.jvm import compiled
from lancelake.spark.jvm.gateway import open_gateway


def main(folder: Path) -> None:
    """Read a table in both applications and print what was compiled, left and warned of."""
    lancelake.write_dataset(pa.table({"id": range(10)}), folder / "t.lance")
    cooked: list[str] = []
    cook = compiled._cooked

    def counted(gateway: object, name: str, parent: object = None) -> object:
        cooked.append(name)
        return cook(gateway, name, parent)  # type: ignore[arg-type]

    compiled._cooked = counted  # type: ignore[assignment]
    jars: list[Path] = []
    rows: list[int] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            spark = session(
                "local[1]",
                root=str(folder / "warehouse"),
                spark_ui_enabled=False,
                **{"spark.log.level": "OFF", "spark.ui.showConsoleProgress": False},
            )
            rows.append(len(spark.read.format("lance").load(str(folder / "t.lance")).collect()))
            root = open_gateway(spark).member("org.apache.spark.SparkFiles", "getRootDirectory")()
            jars += Path(root).rglob("lancelake/lancelake.jar")
            spark.stop()
    ours = [str(w.message) for w in caught if "lancelake" in str(w.message).lower()]
    left = [str(jar) for jar in jars if jar.parent.exists()]
    print(
        json.dumps({"cooked": cooked, "rows": rows, "jars": len(jars), "left": left, "said": ours})
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
