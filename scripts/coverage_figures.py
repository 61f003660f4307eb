"""Lines of each package that its tests run, compared with the figures of coverage.toml.

`make coverage` runs the tests of the core with this module as a plugin of pytest, on Python 3.12 or
newer, whose `sys.monitoring` counts a line once and then costs nothing; then it runs this module
as a script. Processes that tests start are not counted. `--update` writes the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "lancelake"
FIGURES = ROOT / "coverage.toml"
# Where the processes of a test run leave what they have counted.
COUNTED = ROOT / "build" / "coverage"
# Threads and the time of the run decide about a few lines.
TOLERANCE = 0.3
_HEAD = """# Lines that `make coverage` runs, per cent of each package; they may not fall.
# `make coverage UPDATE=--update` writes them.
"""

_lines: dict[str, set[int]] = defaultdict(set)


def pytest_configure() -> None:
    """Count from here on."""
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]  # since Python 3.12
    prefix = f"{SOURCES}{os.sep}"

    def count(code: CodeType, line: int) -> Any:
        if code.co_filename.startswith(prefix):
            _lines[code.co_filename].add(line)
        return monitoring.DISABLE

    monitoring.use_tool_id(monitoring.COVERAGE_ID, "lancelake")
    monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, count)
    monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)


def pytest_unconfigure() -> None:
    """Write what this process has counted."""
    COUNTED.mkdir(parents=True, exist_ok=True)
    text = json.dumps({name: sorted(lines) for name, lines in _lines.items()})
    (COUNTED / f"{os.getpid()}.json").write_text(text, encoding="utf-8")


def measure(packages: Mapping[str, float]) -> dict[str, float]:
    """Return the share of lines of each package that were counted, in per cent."""
    run: dict[Path, set[int]] = defaultdict(set)
    for path in COUNTED.glob("*.json"):
        for name, lines in json.loads(path.read_text(encoding="utf-8")).items():
            run[Path(name)].update(lines)
    shares = {}
    for package in packages:
        every = {path: executable(path) for path in (SOURCES / package).rglob("*.py")}
        count = sum(len(lines) for lines in every.values())
        covered = sum(len(lines & run[path]) for path, lines in every.items())
        shares[package] = round(100 * covered / count, 1)
    return shares


def executable(path: Path) -> set[int]:
    """Return the lines of a module that can run."""
    return set(_executable(compile(path.read_text(encoding="utf-8"), str(path), "exec")))


def _executable(code: CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _executable(constant)


def main(*, is_update: bool) -> int:
    """Print the packages whose share has fallen; return 1 if there are any."""
    figures: dict[str, float] = tomllib.loads(FIGURES.read_text(encoding="utf-8"))
    shares = measure(figures)
    if is_update:
        text = "".join(f"{package} = {share}\n" for package, share in sorted(shares.items()))
        FIGURES.write_text(_HEAD + text, encoding="utf-8")
        return 0
    fallen = [package for package in figures if shares[package] < figures[package] - TOLERANCE]
    for package in fallen:
        print(
            f"{package}: {shares[package]} % of the lines are run, less than {figures[package]} %"
        )
    return 1 if fallen else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="write coverage.toml")
    sys.exit(main(is_update=parser.parse_args().update))
