"""Check that Java is installed, with advice if it is not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from lancelake.errors import UnsupportedError

_HINT = (
    "Install Java 17 or newer, for example `apt install openjdk-17-jre-headless` or `brew "
    "install openjdk@17`, or set JAVA_HOME."
)


def ensure_java(environment: Mapping[str, str] = os.environ) -> None:
    """Raise an error if Java is not found where Spark searches for it."""
    home = environment.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise UnsupportedError(f"JAVA_HOME is {home}, but it has no bin/java", action=_HINT)
        return
    if shutil.which("java", path=environment.get("PATH")) is None:
        raise UnsupportedError("Spark needs Java, but Java was not found", action=_HINT)
