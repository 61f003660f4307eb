"""Every module has its tests: under `tests/unit` at the same place, or in a suite that is named.

Exceptions are lines of `tests/mirrors.toml`: a module or a package, and the suite that covers it.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

GENERATED = "proto"


def main(root: Path) -> int:
    """Print every module without tests, and every exception that is not one; return 1 if any."""
    listed = tomllib.loads((root / "tests" / "mirrors.toml").read_text(encoding="utf-8"))
    missing = set(unmirrored(root))
    covered = {name for name in missing for entry in listed if _is_below(name, entry)}
    findings = [f"{name}: no tests/unit/{_mirror(name)}" for name in missing - covered]
    for entry, suite in listed.items():
        if not any(_is_below(name, entry) for name in missing):
            findings.append(f"{entry}: listed in tests/mirrors.toml, but has tests of its own")
        if not suite.split():
            findings.append(f"{entry}: listed in tests/mirrors.toml without a suite")
        findings += [
            f"{entry}: {part} does not exist"
            for part in suite.split()
            if not (root / "tests" / part).exists()
        ]
    for finding in sorted(findings):
        print(finding)
    return 1 if findings else 0


def unmirrored(root: Path) -> Iterator[str]:
    """Yield the modules that have no tests at the same place."""
    package = root / "src" / "lancelake"
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if path.name.startswith("__") or name.split("/")[0] == GENERATED:
            continue
        if not (root / "tests" / "unit" / _mirror(name)).exists():
            yield name


def _mirror(name: str) -> str:
    folder, _, module = name.rpartition("/")
    return f"{folder}/test_{module}" if folder else f"test_{module}"


def _is_below(name: str, entry: str) -> bool:
    return name == entry or name.startswith(f"{entry}/")


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent.parent))
