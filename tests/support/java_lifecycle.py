"""Two Spark applications in one JVM, one after the other."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import pyarrow as pa

import lancelake
from lancelake.spark import session


def main(folder: Path) -> None:
    """Read a table in both applications and print its rows and all warnings."""
    lancelake.write_dataset(pa.table({"id": range(10)}), folder / "t.lance")
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
            spark.stop()
    ours = [str(w.message) for w in caught if "lancelake" in str(w.message).lower()]
    print(json.dumps({"rows": rows, "said": ours}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
