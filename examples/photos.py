"""Tour: official Lance writes a table of photos, Lancelake reads it back."""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import tempfile
import zlib

import lance
import numpy as np
import pyarrow as pa
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

import lancelake
from lancelake.cli.console import stdout
from lancelake.cli.group import app

SEED = 7
DIMENSIONS = 32
SIDE = 12
CAMERAS = ("Aquila X2", "Nordlys 50", "Pocket 8")
SUBJECTS = ("a harbour at dawn", "two foxes", "the old mill", "rain on glass", "a paper kite")
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("caption", pa.string()),
        pa.field("image", pa.binary()),
        pa.field("embedding", pa.list_(pa.float32(), DIMENSIONS)),
        pa.field(
            "shot",
            pa.struct(
                [
                    ("camera", pa.string()),
                    ("iso", pa.int32()),
                    ("place", pa.struct([("lat", pa.float64()), ("lon", pa.float64())])),
                ]
            ),
        ),
        pa.field("labels", pa.list_(pa.string())),
    ]
)

console = stdout()


def main() -> int:
    """Write, then read; return 0 when the table is in order."""
    with tempfile.TemporaryDirectory(prefix="lancelake-demo-") as folder:
        os.chdir(folder)
        try:
            return tour("photos.lance")
        finally:
            os.chdir("/")


def tour(uri: str) -> int:
    """Show one thing after the other."""
    title("Official Lance writes", f"pylance {lance.__version__} makes a table and changes it")
    write(uri)
    title("Lancelake reads", f"lancelake {lancelake.__version__}, its own reading of the format")
    command("info", uri)
    command("log", uri)

    title("Time travel", "every version, tag and branch stays readable")
    command("count", uri)
    command("count", uri, "--at", "launch")
    command("count", uri, "--at", "experiment:")

    title("Rows", "filters, projections into structs, single rows")
    command("head", uri, "-n", "4", "--filter", "shot.iso >= 1600 and caption like '%fox%'")
    command("take", uri, "3,141,592", "--columns", "id,caption,shot.place.lat,pixels")
    python_part()

    title("In order?", "every version, every file, every value")
    return command("check", uri, "--all-versions", "--data")


def write(uri: str) -> None:
    """Make versions of every kind."""
    rng = np.random.default_rng(SEED)
    lance.write_dataset(photos(rng, 0, 600), uri, max_rows_per_file=300)
    step("create", "600 photos in 2 fragments")
    lance.dataset(uri).tags.create("launch", 1)
    step("tag", "version 1 is called launch")
    lance.write_dataset(photos(rng, 600, 800), uri, mode="append")
    step("append", "200 photos more")
    lance.dataset(uri).delete("id % 9 = 4")
    step("delete", "every ninth photo")
    lance.dataset(uri).add_columns({"pixels": f"cast({SIDE * SIDE} as int)"})
    step("add column", "pixels, computed")
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    step("index", "a B-tree on id")
    branch = lance.dataset(uri).create_branch("experiment")
    more = photos(rng, 800, 850).append_column("pixels", pa.array([SIDE * SIDE] * 50, pa.int32()))
    lance.write_dataset(more, branch.uri, mode="append")
    step("branch", "experiment, with 50 photos of its own")


PYTHON = """\
ds = lancelake.dataset("photos.lance")
bright = ds.to_table(columns=["shot.camera", "embedding"], filter="shot.iso = 100")
print(bright.num_rows, "photos at ISO 100, taken with", bright["shot.camera"].unique().to_pylist())
launch = ds.checkout_version("launch")
print("at the launch there were", launch.count_rows("shot.iso = 100"))
"""


def python_part() -> None:
    """Read with the Python interface, which is that of pylance."""
    console.print(Syntax(PYTHON.rstrip(), "python", background_color="default"))
    exec(PYTHON, {"lancelake": lancelake})


def photos(rng: np.random.Generator, first: int, last: int) -> pa.Table:
    """Make rows that look like something."""
    count = last - first
    numbers = range(first, last)
    vectors = rng.normal(size=(count, DIMENSIONS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shots = [
        {
            "camera": CAMERAS[int(rng.integers(len(CAMERAS)))],
            "iso": int(100 * 2 ** rng.integers(6)),
            "place": {"lat": float(rng.uniform(-60, 70)), "lon": float(rng.uniform(-180, 180))},
        }
        for _ in numbers
    ]
    columns = [
        list(numbers),
        [f"{SUBJECTS[i % len(SUBJECTS)]}, no. {i}" for i in numbers],
        [png(rng.integers(0, 256, (SIDE, SIDE), dtype=np.uint8)) for _ in numbers],
        pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSIONS),
        shots,
        [["outdoor", "raw"][: int(rng.integers(3))] for _ in numbers],
    ]
    return pa.table(columns, schema=SCHEMA)


def png(pixels: np.ndarray) -> bytes:
    """Encode grey pixels as a PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def title(name: str, what: str) -> None:
    console.print()
    console.print(Rule(Text(name, style="bold"), align="left", style="dim"))
    console.print(Text(what, style="dim"))
    console.print()


def step(name: str, what: str) -> None:
    console.print(Text.assemble(("  ✓ ", "green"), f"{name:<12}", (what, "dim")))


def command(*args: str) -> int:
    """Run a command of the command line as if typed; return its exit code."""
    typed = " ".join(f'"{arg}"' if " " in arg else arg for arg in args)
    console.print(Text.assemble(("$ ", "dim"), (f"lancelake {typed}", "bold cyan")))
    code = 0
    try:
        app(list(args), prog_name="lancelake")
    except SystemExit as done:
        code = int(done.code or 0)
    console.print()
    return code


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
