"""Run the benchmarks and record the results: `python -m benchmarks.run`."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Iterable
from dataclasses import asdict
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from benchmarks import (
    cleaning,
    columns,
    committing,
    contention,
    indices,
    maintenance,
    many,
    memory,
    reading,
    rows,
    small_tables,
    spark_runs,
    tables,
    text_search,
    vector_search,
    writing,
)
from benchmarks.measure import Case, Comparison, compare

_HERE = Path(__file__).parent
_OLDER_SPARK = _HERE.parent / ".interop" / "spark-4.2" / "bin" / "python"
_STREAM_TARGET_MB = 600
_MERGE_TARGET_MB = 2048
_Results = Iterable[Case | Comparison]
_Sections = dict[str, Callable[[], _Results]]


def main() -> None:
    """Measure what is asked for, print it, and keep it in results.json and results.md."""
    options = _options()
    tables.ROOT.mkdir(exist_ok=True)
    document = _known()
    sections = _sections(options)
    for name in options.only or sections:
        measured = [_shown(each) for each in sections[name]()]
        document["sections"][name] = [asdict(r) | {"ratio": round(r.ratio, 3)} for r in measured]
    for name, peak in _peaks(options).items():
        asked_by = {name.split()[0].rstrip(":"), name.partition(":")[0]}
        if not options.only or asked_by & set(options.only):
            document["memory"][name] = peak()
            print(name, document["memory"][name], flush=True)
    document |= {
        "versions": {name: version(name) for name in ("lancelake", "pylance", "pyarrow")},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    (_HERE / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    (_HERE / "results.md").write_text(_page(document))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--stream-gigabytes", type=float, default=5.0)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--only",
        nargs="+",
        help="sections of results.md, in lower case; the figures of others stay",
    )
    return parser.parse_args()


def _sections(options: argparse.Namespace) -> _Sections:
    return {
        "reading": lambda: reading.cases(options.gigabytes),
        "writing": lambda: writing.cases(options.gigabytes),
        "committing": lambda: chain(committing.cases(), committing.comparisons()),
        "contention": contention.comparisons,
        "rows": lambda: rows.cases(options.rows),
        "indices": lambda: indices.cases(options.rows),
        "text search": text_search.cases,
        "vector search": lambda: vector_search.cases(options.rows),
        "columns": lambda: columns.cases(options.rows),
        "maintenance": maintenance.cases,
        "many": many.cases,
        "small tables": small_tables.cases,
        "cleaning": cleaning.cases,
        "spark reading": lambda: spark_runs.measured("spark_reading"),
        "spark writing": lambda: spark_runs.measured("spark_writing"),
        "spark merging": lambda: spark_runs.measured("spark_merging", _OLDER_SPARK),
        "spark contention": lambda: spark_runs.measured("spark_contention"),
        "tpch": lambda: spark_runs.measured("tpch"),
        "spark indices": lambda: spark_runs.measured("spark_indices"),
    }


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
        f"spark indices: embedded build of a BTREE of {indices.BUILD_ROWS:,} rows": lambda: {
            "target_mb": indices.BUILD_TARGET_MB,
            "ours_mb": indices.build_peak_mb("lancelake"),
            "official_mb": indices.build_peak_mb("lance"),
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


def _filtered(uri: str, condition: str) -> dict[str, float]:
    return {
        "target_mb": _STREAM_TARGET_MB,
        "ours_mb": memory.filtered_growth_mb("lancelake", uri, condition),
        "official_mb": memory.filtered_growth_mb("lance", uri, condition),
    }


def _known() -> dict[str, dict[str, object]]:
    """Return the figures of the last run, for what is not measured now."""
    path = _HERE / "results.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: found.get(name, {}) for name in ("versions", "machine", "sections", "memory")}


def _shown(each: Case | Comparison) -> Comparison:
    result = compare(each) if isinstance(each, Case) else each
    verdict = "met" if result.ratio <= result.target else "MISSED"
    print(
        f"{result.name:48s} ours {result.ours_s * 1e3:9.2f} ms  "
        f"peer {result.official_s * 1e3:9.2f} ms  ratio {result.ratio:5.2f}  "
        f"target {result.target:.1f} {verdict}",
        flush=True,
    )
    return result


def _page(document: dict[str, object]) -> str:
    sections: dict[str, list[dict[str, object]]] = document["sections"]  # type: ignore[assignment]
    peaks: dict[str, object] = document["memory"]  # type: ignore[assignment]
    lines = [
        "# Benchmark results",
        "",
        "Written by `make bench`; do not edit. The peer is timed in the same run, in turns; times",
        "are medians. Below a ratio of 1 Lancelake is faster. The peer is official Lance",
        "(`pylance`); in the sections about Spark it is Parquet, or what the line names, in the",
        "same session on two cores.",
        "",
        "What Lancelake writes to local disk is on the disk when a call returns; official Lance",
        "leaves that to the system. Where nothing is said, Lancelake ran with",
        "`LANCELAKE_FSYNC=off`, so that both do the same; `ours waits` is Lancelake as it comes.",
        "",
        f"Versions: {document['versions']}. Machine: {document['machine']}.",
    ]
    for name, results in sections.items():
        lines += ["", f"## {name.capitalize()}", "", *_rows(results)]
    lines += ["", "## Peak memory", ""]
    lines += [f"- {name}: {peak}" for name, peak in peaks.items()]
    return "\n".join([*lines, ""])


def _rows(results: Iterable[dict[str, object]]) -> list[str]:
    head = ["| what | ours ms | peer ms | ratio | target | met |", "|---|---|---|---|---|---|"]
    return head + [
        f"| {r['name']}{_note(r)} | {r['ours_s'] * 1e3:.2f} | {r['official_s'] * 1e3:.2f} "  # type: ignore[operator]
        f"| {r['ratio']:.2f} | {r['target']:.1f} "
        f"| {'yes' if r['ratio'] <= r['target'] else 'no'} |"  # type: ignore[operator]
        for r in results
    ]


def _note(result: dict[str, object]) -> str:
    return f" ({result['note']})" if result["note"] else ""


if __name__ == "__main__":
    main()
