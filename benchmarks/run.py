"""Run the benchmarks and record the results: `python -m benchmarks.run`."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from benchmarks import (
    cleaning,
    columns,
    committing,
    contention,
    index_builds,
    indices,
    maintenance,
    many,
    memory,
    memwal,
    pages,
    reading,
    rows,
    small_tables,
    tables,
    text_search,
    vector_search,
    writing,
)
from benchmarks.measure import Case, Comparison, compare
from benchmarks.processes import Skipped, measured
from lancelake.errors import suggestion

_HERE = Path(__file__).parent
_PACKAGES = ("lancelake", "pylance", "pyarrow", "datafusion", "numpy", "pyspark")
_STREAM_TARGET_MB = 600
_MERGE_TARGET_MB = 2048
_Results = Iterable[Case | Comparison | Skipped]
_Sections = dict[str, Callable[[], _Results]]


def main() -> None:
    """Measure what is asked for and print it; what is measured is kept after each section."""
    options = _options()
    tables.ROOT.mkdir(exist_ok=True)
    sections = _sections(options)
    _ensure_known(options.only or (), sections)
    folder, docs = (_HERE, _HERE.parent / "docs") if options.update else (tables.ROOT, None)
    document = pages.known(folder)
    for name in options.only or sections:
        _measure_section(document, name, sections[name])
        pages.write(folder, document, docs=docs)
    for name, peak in _peaks(options).items():
        asked_by = {name.split()[0].rstrip(":"), name.partition(":")[0]}
        if not options.only or asked_by & set(options.only):
            document["memory"][name] = peak()
            print(name, document["memory"][name], flush=True)
            pages.write(folder, document, docs=docs)
    print(f"results are in {folder / 'results.md'}")


def _measure_section(document: pages.Document, name: str, section: Callable[[], _Results]) -> None:
    """Replace the figures of a section by those of a run now."""
    document["versions"] = _versions()
    document["machine"] = {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
    }
    run = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "load": round(os.getloadavg()[0], 1)}
    found = [_shown(each) for each in section()]
    document["skipped"].pop(name, None)
    reasons = [each.reason for each in found if isinstance(each, Skipped)]
    if reasons:
        document["skipped"][name] = "; ".join(reasons)
    results = [each for each in found if isinstance(each, Comparison)]
    if results:
        document["sections"][name] = [asdict(r) | {"ratio": round(r.ratio, 3)} for r in results]
        document["runs"][name] = run


def _versions() -> dict[str, str]:
    named = {name: version(name) for name in _PACKAGES}
    return {"Python": platform.python_version(), **named}


def _ensure_known(names: Iterable[str], sections: _Sections) -> None:
    """Stop if a section is unknown."""
    for name in names:
        if name not in sections:
            sys.exit(f"unknown section {name!r}. {suggestion(name, sections, 'sections') or ''}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--stream-gigabytes", type=float, default=5.0)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--vectors", type=int, default=1_000_000)
    parser.add_argument("--scale", type=float, default=1.0, help="scale factor of TPC-H")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of each query of TPC-H")
    parser.add_argument("--queries", type=int, nargs="+", help="queries of TPC-H, 1 to 22")
    parser.add_argument(
        "--only",
        nargs="+",
        help="sections of results.md, in lower case; the figures of others stay",
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="write the committed results; otherwise they are written to .benchdata",
    )
    return parser.parse_args()


def _sections(options: argparse.Namespace) -> _Sections:
    queries = ("--scale", options.scale, "--rounds", options.rounds)
    if options.queries:
        queries += ("--only", *options.queries)
    return {
        "reading": lambda: reading.cases(options.gigabytes),
        "writing": lambda: writing.cases(options.gigabytes),
        "committing": lambda: chain(committing.cases(), committing.comparisons()),
        "contention": contention.comparisons,
        "rows": lambda: rows.cases(options.rows),
        "indices": lambda: indices.cases(options.rows),
        "index builds": lambda: index_builds.cases(options.rows),
        "text search": text_search.cases,
        "vector search": lambda: vector_search.cases(options.vectors),
        "memwal": lambda: memwal.cases(options.rows // 10),
        "columns": lambda: columns.cases(options.rows),
        "maintenance": maintenance.cases,
        "many": many.cases,
        "small tables": small_tables.cases,
        "cleaning": cleaning.cases,
        "spark reading": lambda: measured("spark_reading"),
        "spark writing": lambda: measured("spark_writing"),
        "spark merging": lambda: _on_both("spark_merging", "--rows", options.rows),
        "spark contention": lambda: measured("spark_contention"),
        "tpch": lambda: measured("tpch", None, queries),
        "tpch delta": lambda: measured("tpch", "spark-4.2", (*queries, "--peer", "delta")),
        "tpch iceberg": lambda: measured("tpch", "spark-4.1", (*queries, "--peer", "iceberg")),
        "embedded": lambda: measured("embedded", "peers", ("--rows", options.rows // 2)),
        "lancedb search": lambda: measured(
            "lancedb_search", "peers", ("--vectors", options.vectors)
        ),
        "spark memwal": lambda: measured("spark_memwal"),
        "spark search": lambda: measured("spark_search"),
        "spark indices": lambda: measured("spark_indices"),
    }


def _on_both(module: str, *arguments: object) -> Iterator[Comparison | Skipped]:
    """Compare with Delta Lake and with Iceberg, each on the Spark that its jars are built for."""
    yield from measured(module, "spark-4.2", (*arguments, "--peer", "delta"))
    yield from measured(module, "spark-4.1", (*arguments, "--peer", "iceberg"))


def _peaks(options: argparse.Namespace) -> dict[str, Callable[[], dict[str, float]]]:
    uri = lambda: tables.wide(options.stream_gigabytes)  # noqa: E731  # made when needed
    target, source = 2 * options.rows, options.rows // 2
    return {
        f"reading {options.stream_gigabytes:g} GB": lambda: {
            "target_mb": _STREAM_TARGET_MB,
            "ours_mb": memory.peak_mb("lancelake", uri()),
            "official_mb": memory.peak_mb("lance", uri()),
        },
        "reading 1,500 doubles x 100,000, half kept by a filter": lambda: _filtered(
            tables.doubles(100_000, 1500), "c0 > 0.5"
        ),
        "reading vectors of 768 floats x 400,000, 30 % kept by a filter": lambda: _filtered(
            tables.vectors(400_000, 768), "c0 > 0.7"
        ),
        f"writing {options.gigabytes:g} GB": lambda: {
            "target_mb": _STREAM_TARGET_MB,
            "ours_mb": writing.peak_mb("lancelake", options.gigabytes),
            "official_mb": writing.peak_mb("lance", options.gigabytes),
        },
        f"rows: {source:,} merged into {target:,}": lambda: {
            "target_mb": _MERGE_TARGET_MB,
            "ours_mb": rows.merge_peak_mb("lancelake", target, source),
            "official_mb": rows.merge_peak_mb("lance", target, source),
        },
        f"index builds: a BTREE of {index_builds.BUILD_ROWS:,} rows": lambda: {
            "target_mb": index_builds.BUILD_TARGET_MB,
            "ours_mb": index_builds.build_peak_mb("lancelake"),
            "official_mb": index_builds.build_peak_mb("lance"),
        },
        **{
            f"vector search: build of {kind} of {vector_search.BUILD_ROWS:,} x 128": partial(
                _vector_build, kind
            )
            for kind in ("IVF_PQ", "IVF_HNSW_SQ")
        },
        f"columns of {columns.VECTORS:,} vectors": lambda: {
            "target_mb": columns.BACKFILL_TARGET_MB,
            **{f"{way}_mb": columns.peak_mb(way) for way in columns.WAYS},
        },
        f"maintenance: compact {maintenance.MEMORY_GIGABYTES:g} GB": lambda: {
            "target_mb": maintenance.MEMORY_TARGET_MB,
            "ours_mb": maintenance.peak_mb("lancelake"),
            "official_mb": maintenance.peak_mb("lance"),
        },
    }


def _vector_build(kind: str) -> dict[str, float]:
    return {
        "target_mb": vector_search.BUILD_TARGET_MB,
        "ours_mb": vector_search.build_peak_mb("lancelake", kind),
        "official_mb": vector_search.build_peak_mb("lance", kind),
    }


def _filtered(uri: str, condition: str) -> dict[str, float]:
    return {
        "target_mb": _STREAM_TARGET_MB,
        "ours_mb": memory.filtered_growth_mb("lancelake", uri, condition),
        "official_mb": memory.filtered_growth_mb("lance", uri, condition),
    }


def _shown(each: Case | Comparison | Skipped) -> Comparison | Skipped:
    if isinstance(each, Skipped):
        print(f"skipped: {each.reason}", flush=True)
        return each
    result = compare(each) if isinstance(each, Case) else each
    verdict = "met" if result.ratio <= result.target else "MISSED"
    print(
        f"{result.name:48s} ours {result.ours_s * 1e3:9.2f} ms  "
        f"peer {result.official_s * 1e3:9.2f} ms  ratio {result.ratio:5.2f}  "
        f"target {result.target:.1f} {verdict}",
        flush=True,
    )
    return result


if __name__ == "__main__":
    main()
