"""Demo: a pipeline on local Spark, or without Spark, on generated data.

python examples/demo.py [--rows N] [--uri FOLDER] [--master local[*]] [--no-spark]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

import lancelake

ROWS = 2_000_000
EMBEDDED_ROWS = 200_000
MARK = ".lancelake-demo"

console = Console(highlight=False)


def run(steps: list[tuple[str, Callable[[], str]]]) -> None:
    """Do one step after the other, and say what each did."""
    for name, action in steps:
        with console.status(f"{name} ..."):
            begun = time.perf_counter()
            result = action()
            seconds = time.perf_counter() - begun
        line = Text.assemble((f"{name:<20}", "bold"), (f"{seconds:6.1f} s  ", "cyan"), result)
        console.print(line, soft_wrap=True)


@contextlib.contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """Let what this process and Java say on standard error go to a file."""
    kept = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def ensure_own(folder: Path) -> None:
    """Stop unless the folder, which is about to be replaced, is new, empty or of an earlier run."""
    if folder.exists() and not (folder / MARK).exists() and not is_empty(folder):
        sys.exit(f"{folder} exists and is not of this demo: remove it, or name another with --uri")


def is_empty(folder: Path) -> bool:
    """Whether this is a folder with nothing in it."""
    return folder.is_dir() and not any(folder.iterdir())


def on_spark(folder: Path, rows: int, master: str) -> str:
    """Run the pipeline on Spark; return the table to look at."""
    import demo_spark  # noqa: PLC0415  # needs PySpark

    # Java keeps the standard error that it starts with.
    with console.status("starting Spark ..."), stderr_to(folder / "spark.log"):
        spark = demo_spark.started(master, folder)
    head = f"Spark {spark.version} on {master}, lancelake {lancelake.__version__}"
    console.print(Text(head, style="bold green"))
    pipeline = demo_spark.Pipeline(spark, folder, rows)
    run(pipeline.steps())
    spark.stop()
    return pipeline.orders


def embedded(folder: Path, rows: int) -> str:
    """Run the pipeline without Spark; return the table to look at."""
    import demo_embedded  # noqa: PLC0415  # only one of both is needed

    console.print(Text(f"lancelake {lancelake.__version__}, embedded", style="bold green"))
    pipeline = demo_embedded.EmbeddedPipeline(folder, rows)
    run(pipeline.steps())
    return pipeline.uri


def show_log(uri: str) -> None:
    """Show the versions that the pipeline made."""
    console.print(Text("\nlancelake log", style="bold"))
    command = [sys.executable, "-m", "lancelake", "log", uri, "-n", "12"]
    environment = os.environ | {"COLUMNS": str(console.width)}
    subprocess.run(command, check=True, env=environment)


def main() -> int:
    """Run the pipeline and say what to try next."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, help=f"rows ({ROWS:,}; {EMBEDDED_ROWS:,} embedded)")
    parser.add_argument("--uri", default="demo-tables", help="folder for the tables")
    parser.add_argument("--master", default="local[*]", help="where Spark runs")
    parser.add_argument("--no-spark", action="store_true", help="run without Spark and Java")
    chosen = parser.parse_args()
    folder = Path(chosen.uri).absolute()
    ensure_own(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()
    expected = "20 seconds" if chosen.no_spark else "a minute"
    console.print(Text(f"This takes about {expected} on two cores.", style="dim"))
    begun = time.perf_counter()
    if chosen.no_spark:
        shown = embedded(folder, chosen.rows or EMBEDDED_ROWS)
    else:
        shown = on_spark(folder, chosen.rows or ROWS, chosen.master)
    show_log(shown)
    console.print(f"\n{time.perf_counter() - begun:.0f} s in all. The tables stay. Try:")
    tool = Path(sys.executable).with_name("lancelake")
    for command, meaning in (
        (f"{tool} ui {folder}", "an explorer in the browser"),
        (f"{tool} changes {shown} --from 1", "rows that changed"),
        (f'{tool} sql {shown} "select count(*) from dataset"', "SQL without Spark"),
        (f"{tool} check {shown} --data", "read every value"),
    ):
        console.print(Text.assemble("  ", (command, "cyan"), f"  ({meaning})"), soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
