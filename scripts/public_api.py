"""The public API as text: names and signatures of the Python faces, commands and options.

`api.txt` holds what it printed last, so that a change of the surface shows in a diff. Run it with
`--update` to write the file, without to compare.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import typer

PACKAGES = ("lancelake", "lancelake.pylance", "lancelake.spark")
FILE = "api.txt"


def main(root: Path, *, update: bool = False) -> int:
    """Compare the file with the code, or write it; return 1 if they differ."""
    path = root / FILE
    found = [f"{line}\n" for line in lines()]
    if update:
        path.write_text("".join(found), encoding="utf-8")
        return 0
    known = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    difference = list(unified_diff(known, found, FILE, "the code"))
    sys.stdout.writelines(difference)
    if difference:
        print("The public API differs from api.txt: run `make api` if that is intended.")
    return 1 if difference else 0


def lines() -> Iterator[str]:
    """Yield a line for every public name."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in sorted(module.__all__):
            yield from _named(f"{package}.{name}", getattr(module, name))
    yield from _commands()


def _named(name: str, value: Any) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"{name}{_signature(value)}"
        yield from _members(name, value)
    elif callable(value):
        yield f"{name}{_signature(value)}"
    elif inspect.ismodule(value):
        yield f"{name} (module)"
    else:
        yield name


def _members(name: str, value: type) -> Iterator[str]:
    for member, found in sorted(inspect.getmembers(value)):
        if member.startswith("_") or not _is_ours(value, member):
            continue
        if callable(found) and not inspect.isclass(found):
            yield f"{name}.{member}{_signature(found)}"
        else:
            yield f"{name}.{member}"


def _is_ours(value: type, member: str) -> bool:
    owner = next((cls for cls in value.__mro__ if member in vars(cls)), value)
    return owner.__module__.startswith("lancelake")


def _signature(value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    plain = [_plain(parameter) for parameter in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))


def _plain(parameter: inspect.Parameter) -> inspect.Parameter:
    """Leave types out, and defaults that print an address."""
    default = parameter.default
    is_odd = default is not inspect.Parameter.empty and " at 0x" in repr(default)
    return parameter.replace(annotation=inspect.Parameter.empty, default=... if is_odd else default)


def _commands() -> Iterator[str]:
    from lancelake.cli.group import command_names, load_command  # noqa: PLC0415  # slow to load

    context = typer.Context(typer.core.TyperCommand("lancelake"))
    for name in command_names():
        yield from _command(f"lancelake {name}", load_command(name), context)


def _command(name: str, command: Any, context: Any) -> Iterator[str]:
    parts = [_parameter(parameter) for parameter in command.get_params(context)]
    yield " ".join([f"$ {name}", *[part for part in parts if part]])
    for sub in sorted(getattr(command, "commands", {}).items()):
        yield from _command(f"{name} {sub[0]}", sub[1], context)


def _parameter(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    names = [*parameter.opts, *parameter.secondary_opts]
    return "" if "--help" in names else f"[{'|'.join(names)}]"


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parent.parent, update="--update" in sys.argv[1:]))
