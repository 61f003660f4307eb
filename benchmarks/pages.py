"""The pages about measured figures: `results.md`, and `docs/benchmarks.md` with its charts.

python -m benchmarks.pages  # write both again from results.json
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import charts
from benchmarks.charts import duration

_HERE = Path(__file__).parent
_DOCS = _HERE.parent / "docs"
_CHARTS = "images/benchmarks"
_INTRODUCTION = """\
Both sides run on one machine, in turns; times are medians. A ratio below 1 means that Lancelake is
faster. The peer is official Lance (`pylance`) where nothing else is named; on Spark it is Parquet,
or the format that the line names, in the same session on two cores.

Lancelake waits until what it writes to a local disk is on the disk; the peers leave that to the
operating system. Where nothing is said, Lancelake ran with `LANCELAKE_FSYNC=off`, so that both do
the same; `ours waits` is the default setting.
"""
_TITLES = {
    "tpch": "TPC-H on Spark",
    "tpch delta": "TPC-H on Spark, Delta Lake",
    "tpch iceberg": "TPC-H on Spark, Iceberg",
    "memwal": "MemWAL",
    "spark memwal": "MemWAL on Spark",
    "many": "Many versions and fragments",
    "lancedb search": "Search, LanceDB",
    "embedded": "Without Spark, delta-rs and PyIceberg",
}

Document = dict[str, Any]
Result = dict[str, Any]


def write(folder: Path, document: Document, *, docs: Path | None = None) -> None:
    """Write `results.json` and `results.md` to a folder, and the page of the site if asked."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    (folder / "results.md").write_text(results_page(document))
    if docs is None:
        return
    for path, text in site_files(document).items():
        (docs / path).parent.mkdir(parents=True, exist_ok=True)
        (docs / path).write_text(text)


def known(folder: Path) -> Document:
    """Return the figures of the last run, or none."""
    path = folder / "results.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    parts = ("versions", "machine", "sections", "memory", "skipped", "runs")
    document = {name: found.get(name, {}) for name in parts}
    if isinstance(document["machine"], str):
        document["machine"] = {"system": document["machine"]}
    return document


def results_page(document: Document) -> str:
    """Return all figures as tables."""
    lines = ["# Benchmark results", "", "Written by `make bench`; do not edit.", "", _INTRODUCTION]
    lines += [*_environment(document)]
    for name, results in document["sections"].items():
        lines += [f"## {_title(name)}", "", *_table(results), ""]
    return "\n".join([*lines, "## Peak memory", "", *_memory(document["memory"]), ""])


def site_files(document: Document) -> dict[str, str]:
    """Return the page of the site and its charts, by their paths below `docs`."""
    files = {"benchmarks.md": _site_page(document)}
    for name, results in document["sections"].items():
        chart = charts.ratios(f"{_title(name)}: ratio of Lancelake's time to its peer's", results)
        files[_chart_path(name)] = chart
    return files


def _site_page(document: Document) -> str:
    lines = ["# Benchmarks", "", _INTRODUCTION]
    lines += ["`make bench` measures again; see [below](#run-the-benchmarks).", ""]
    lines += ["## Where Lancelake is slower", "", *_losses(document), ""]
    for name, results in document["sections"].items():
        lines += [f"## {_title(name)}", "", *_measured(document, name)]
        lines += [f"![Ratios of {_title(name)}]({_chart_path(name)})", "", *_table(results), ""]
    lines += ["## Peak memory", "", *_memory(document["memory"]), ""]
    lines += ["## Environment", "", *_environment(document), *_how_to()]
    return "\n".join(lines)


def _losses(document: Document) -> list[str]:
    """Return what takes longer or more memory than its goal, the worst first."""
    slow = [
        {
            **result,
            "name": f"{_title(section)}: {result['name']}",
            "peer": result.get("peer") or _usual_peer(section),
        }
        for section, results in document["sections"].items()
        for result in results
        if not _met(result)
    ]
    lines = ["Everything that misses its goal:", ""]
    lines += _table(sorted(slow, key=lambda r: r["ratio"] / r["target"], reverse=True))
    if not slow:
        lines = ["Every time is within its goal."]
    slower = sum(r["ratio"] > 1 for results in document["sections"].values() for r in results)
    total = sum(len(results) for results in document["sections"].values())
    lines += ["", f"{slower} of {total} figures have a ratio above 1."]
    large = [
        f"- {name}: {peak['ours_mb']:,} MB, official Lance {peak['official_mb']:,} MB"
        for name, peak in document["memory"].items()
        if peak.get("ours_mb", 0) > peak.get("official_mb", float("inf"))
    ]
    lines += ["", "More memory than official Lance:", "", *large] if large else []
    skipped = [f"- {_title(name)}: {why}" for name, why in document["skipped"].items()]
    return [*lines, "", "Not measured:", "", *skipped] if skipped else lines


def _usual_peer(section: str) -> str:
    """Return what lines that name no peer are compared with."""
    return "Parquet on Spark" if section.startswith("spark") else "official Lance"


def _measured(document: Document, name: str) -> list[str]:
    """Return when a section was measured and how busy the machine was, where it is known."""
    run = document["runs"].get(name)
    if not run:
        return []
    return [f"Measured on {run['date']}, load of the machine before it: {run['load']:.1f}.", ""]


def _table(results: Iterable[Result]) -> list[str]:
    rows = list(results)
    peers = any(result.get("peer") for result in rows)
    column = " peer |" if peers else ""
    lines = [f"| operation |{column} Lancelake | peer's time | ratio | goal | met |"]
    lines.append("|---|" + ("---|" if peers else "") + "--:|--:|--:|--:|---|")
    lines += [
        f"| {_label(r)} |"
        + (f" {r.get('peer') or 'official Lance'} |" if peers else "")
        + f" {duration(r['ours_s'])} | {duration(r['official_s'])} | {r['ratio']:.2f}"
        + f" | {r['target']:.1f} | {'yes' if _met(r) else '**no**'} |"
        for r in rows
    ]
    return lines


def _memory(peaks: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["| operation | Lancelake | official Lance | goal |", "|---|--:|--:|--:|"]
    for name, peak in peaks.items():
        goal, official = peak.get("target_mb"), peak.get("official_mb")
        ours = {key: value for key, value in peak.items() if key not in _NOT_OURS}
        for key, value in ours.items():
            way = "" if key == "ours_mb" else f", {key.removesuffix('_mb')}"
            lines.append(f"| {name}{way} | {_mb(value)} | {_mb(official)} | {_mb(goal)} |")
    return lines


_NOT_OURS = frozenset({"target_mb", "official_mb"})


def _mb(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f} MB"


def _environment(document: Document) -> Iterator[str]:
    yield from ("| | version |", "|---|---|")
    yield from (f"| {name} | {value} |" for name, value in document["versions"].items())
    yield from ("", "| machine | |", "|---|---|")
    yield from (f"| {name} | {value} |" for name, value in document["machine"].items())
    yield ""


def _how_to() -> list[str]:
    return [
        "## Run the benchmarks",
        "",
        "```shell",
        "make bench                                 # everything; results go to .benchdata",
        'make bench ARGS="--only reading rows"      # some sections',
        'make bench ARGS="--only tpch --scale 0.1"  # TPC-H at another scale factor',
        'make bench ARGS="--update"                 # write the committed figures and this page',
        "```",
        "",
        "The peers are installed in environments of their own from `requirements/peers.lock`,",
        "`requirements/spark-4.1.lock` and `requirements/spark-4.2.lock`; the jars of Delta Lake",
        "and Iceberg come through Maven. A section whose peer cannot be installed is skipped, with",
        "the reason on this page.",
        "",
    ]


def _label(result: Result) -> str:
    return f"{result['name']} ({result['note']})" if result.get("note") else str(result["name"])


def _title(section: str) -> str:
    return _TITLES.get(section, section[:1].upper() + section[1:])


def _chart_path(section: str) -> str:
    return f"{_CHARTS}/{section.replace(' ', '-')}.svg"


def _met(result: Result) -> bool:
    return bool(result["ratio"] <= result["target"])


if __name__ == "__main__":
    write(_HERE, known(_HERE), docs=_DOCS)
