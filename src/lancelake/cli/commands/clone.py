"""Clone a version of a table."""

from __future__ import annotations

from typing import Annotated

from lancelake.cli import phrases
from lancelake.cli.console import OutputFormat, stderr
from lancelake.cli.options import CommandModule, Message, Output, Version, argument, flag
from lancelake.cli.report import report_version, target_text, version_body
from lancelake.core.values.writes import CommitChoices
from lancelake.errors import AlreadyExistsError

commands = CommandModule()


@commands.add(example="photos.lance copy.lance")
def clone(
    version: Version,
    target: Annotated[str, argument("TARGET", "Path or URI of the clone.")],
    deep: Annotated[
        bool,
        flag(
            "--deep/--shallow",
            "Copy all files, or refer to those of the original, which must then be kept.",
        ),
    ] = False,
    message: Message = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Clone a version of a table."""
    table = version.open()
    place = version.locate(target)
    if place.has_table():
        raise AlreadyExistsError("the target is already a table", table=place.location.uri)
    choices = CommitChoices(message=message)
    if deep:
        with stderr().status("copying files"):
            copy = table.refs.clone_deep(place.location, choices)
    else:
        copy = table.refs.clone_shallow(place.location, choices)
    source = table.snapshot
    kind = "deep" if deep else "shallow"
    origin = target_text(source.branch, source.version)
    of = phrases.printable(f"version {origin} of {source.main_location.uri}")
    report_version(output, copy, {"kind": kind, "source": version_body(source)}, [(kind, of)])
