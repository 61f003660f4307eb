"""Run the benchmarks and record the results: `python -m benchmarks.run`."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable
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
from lancelake.suggest import suggestion

_HERE = Path(__file__).parent
_OLDER_SPARK = _HERE.parent / ".interop" / "spark-4.2" / "bin" / "python"
_STREAM_TARGET_MB = 600
_MERGE_TARGET_MB = 2048
_Results = Iterable[Case | Comparison]
_Sections = dict[str, Callable[[], _Results]]


def main() -> None:
    """Measure what is asked for and print it; what is measured is kept after each section."""
    options = _options()
    tables.ROOT.mkdir(exist_ok=True)
    sections = _sections(options)
    _ensure_known(options.only or (), sections)
    folder = _HERE if options.update else tables.ROOT
    document = _known(folder)
    for name in options.only or sections:
        measured = [_shown(each) for each in sections[name]()]
        document["sections"][name] = [asdict(r) | {"ratio": round(r.ratio, 3)} for r in measured]
        _keep(folder, document)
    for name, peak in _peaks(options).items():
        asked_by = {name.split()[0].rstrip(":"), name.partition(":")[0]}
        if not options.only or asked_by & set(options.only):
            document["memory"][name] = peak()
            print(name, document["memory"][name], flush=True)
            _keep(folder, document)
    print(f"results are in {folder / 'results.md'}")


def _ensure_known(names: Iterable[str], sections: _Sections) -> None:
    """Stop if a section is unknown."""
    for name in names:
        if name not in sections:
            sys.exit(f"unknown section {name!r}. {suggestion(name, sections, 'sections') or ''}")


def _keep(folder: Path, document: dict[str, dict[str, object]]) -> None:
    document["versions"] = {name: version(name) for name in ("lancelake", "pylance", "pyarrow")}
    document["machine"] = {"system": f"{platform.system()} {platform.machine()}"}
    document["machine"]["cores"] = os.cpu_count()
    (folder / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    (folder / "results.md").write_text(_page(document))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--stream-gigabytes", type=float, default=5.0)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--vectors", type=int, default=1_000_000)
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
        "spark reading": lambda: spark_runs.measured("spark_reading"),
        "spark writing": lambda: spark_runs.measured("spark_writing"),
        "spark merging": lambda: spark_runs.measured("spark_merging", _OLDER_SPARK),
        "spark contention": lambda: spark_runs.measured("spark_contention"),
        "tpch": lambda: spark_runs.measured("tpch"),
        "spark memwal": lambda: spark_runs.measured("spark_memwal"),
        "spark search": lambda: spark_runs.measured("spark_search"),
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


def _known(folder: Path) -> dict[str, dict[str, object]]:
    """Return the figures of the last run, for what is not measured now."""
    path = folder / "results.json"
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
        *_pairs("version of", document["versions"]),  # type: ignore[arg-type]
        "",
        *_pairs("machine", document["machine"]),  # type: ignore[arg-type]
    ]
    for name, results in sections.items():
        lines += ["", f"## {name.capitalize()}", "", *_rows(results)]
    lines += ["", "## Peak memory", "", *_peak_rows(peaks)]
    return "\n".join([*lines, ""])


def _pairs(what: str, values: object) -> list[str]:
    """Return a table of names and values; earlier files have a sentence for the machine."""
    found = values if isinstance(values, dict) else {"system": values}
    return [f"| {what} | |", "|---|---|", *(f"| {key} | {value} |" for key, value in found.items())]


def _peak_rows(peaks: dict[str, object]) -> list[str]:
    head = ["| what | target MB | measured MB |", "|---|---|---|"]
    rows = []
    for name, peak in peaks.items():
        found = dict(peak)  # type: ignore[call-overload]
        target = found.pop("target_mb", "")
        measured = ", ".join(f"{k.removesuffix('_mb')} {v:,.0f}" for k, v in found.items())
        rows.append(f"| {name} | {target} | {measured} |")
    return head + rows


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
