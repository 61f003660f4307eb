"""Check that lock files name packages, versions and hashes, and no locations."""

from __future__ import annotations

import re
import sys
from pathlib import Path

# An option such as --index-url, a URL, a direct reference, a path.
PLACE = re.compile(r"^-|://|\s@\s|(^|\s)[./~]*/")


def main(folder: Path) -> int:
    """Print every line that ties a lock file to a place; return 1 if there is one."""
    findings = [
        f"{lock.name}:{number}: {line}"
        for lock in sorted(folder.glob("*.lock"))
        for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), start=1)
        if PLACE.search(line)
    ]
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent / "requirements"))
