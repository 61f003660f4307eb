"""Is there a Java that Spark can start, and what to do when there is none?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from lancelake.errors import UnsupportedError

_HINT = (
    "Install Java 17 or newer, for example `apt install openjdk-17-jre-headless` or "
    "`brew install openjdk@17`, or let JAVA_HOME name one."
)


def ensure_java(environment: Mapping[str, str] = os.environ) -> None:
    """Raise when no Java is found where Spark looks for it."""
    home = environment.get("JAVA_HOME")
    if home:
        if not (Path(home) / "bin" / "java").exists():
            raise UnsupportedError(f"JAVA_HOME is {home}, which has no bin/java", action=_HINT)
        return
    if shutil.which("java", path=environment.get("PATH")) is None:
        raise UnsupportedError("Spark needs Java, and none was found", action=_HINT)
