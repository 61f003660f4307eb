"""Run the benchmarks and write the figures down: `python -m benchmarks.run`."""

from __future__ import annotations

import argparse
import json
import os
import platform
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from benchmarks import tables
from benchmarks.measure import Comparison, compare
from benchmarks.memory import peak_mb
from benchmarks.reading import cases

_HERE = Path(__file__).parent
_STREAM_TARGET_MB = 600


def main() -> None:
    """Measure everything, print it, and keep it in results.json and results.md."""
    options = _options()
    results = []
    for case in cases(options.gigabytes):
        result = compare(case)
        results.append(result)
        print(_line(result), flush=True)
    memory = _memory(options.stream_gigabytes)
    print(memory)
    document = {
        "versions": {name: version(name) for name in ("lancelake", "pylance", "pyarrow")},
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "comparisons": [asdict(r) | {"ratio": round(r.ratio, 3)} for r in results],
        "memory": memory,
    }
    (_HERE / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    (_HERE / "results.md").write_text(_page(document, results))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--stream-gigabytes", type=float, default=5.0)
    return parser.parse_args()


def _memory(gigabytes: float) -> dict[str, float]:
    uri = tables.wide(gigabytes)
    return {
        "stream_gigabytes": gigabytes,
        "target_mb": _STREAM_TARGET_MB,
        "ours_mb": peak_mb("lancelake", uri),
        "official_mb": peak_mb("lance", uri),
    }


def _line(result: Comparison) -> str:
    verdict = "met" if result.ratio <= result.target else "MISSED"
    return (
        f"{result.name:48s} ours {result.ours_s * 1e3:9.2f} ms  "
        f"official {result.official_s * 1e3:9.2f} ms  ratio {result.ratio:5.2f}  "
        f"target {result.target:.1f} {verdict}"
    )


def _page(document: dict[str, object], results: list[Comparison]) -> str:
    rows = [
        f"| {r.name} | {r.ours_s * 1e3:.2f} | {r.official_s * 1e3:.2f} | {r.ratio:.2f} "
        f"| {r.target:.1f} | {'yes' if r.ratio <= r.target else 'no'} |"
        for r in results
    ]
    memory = document["memory"]
    return "\n".join(
        [
            "# Benchmark results",
            "",
            "Written by `make bench`; do not edit. Peer: official Lance (`pylance`) in the same",
            "process, timed in turns; times are medians. Below a ratio of 1 Lancelake is faster.",
            "",
            f"Versions: {document['versions']}. Machine: {document['machine']}.",
            "",
            "| what | ours ms | official ms | ratio | target | met |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            f"Peak memory of a stream through `to_batches`: {memory}.",
            "",
        ]
    )


if __name__ == "__main__":
    main()
