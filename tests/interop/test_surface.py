"""Public names and signatures of official pylance exist here too, but for listed exceptions."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

import pytest

from tests.support import surface as surfaces
from tests.support.official import Official
from tests.support.surface import Parameter, Surface

EXCEPTIONS = Path(__file__).with_name("surface_exceptions.toml")
OURS = "lancelake.pylance"


@pytest.fixture(scope="module")
def theirs(official_14: Official) -> Surface:
    call = "result = surface('lance', hidden=('lance',), members_once=True)"
    code = f"{inspect.getsource(surfaces)}\n{call}"
    found: Surface = official_14.run("unused", code)
    return found


@lru_cache(maxsize=1)
def _ours() -> Surface:
    found = surfaces.surface(OURS, owners=("lance",))
    return {name.replace(OURS, "lance", 1): value for name, value in found.items()}


@lru_cache(maxsize=1)
def _exceptions() -> Mapping[str, str]:
    return tomllib.loads(EXCEPTIONS.read_text(encoding="utf-8"))


def test_every_name_and_argument_of_pylance_exists(theirs: Surface) -> None:
    problems = [
        f"{name}: {problem}"
        for name, problem in _differences(theirs)
        if not any(fnmatchcase(name, pattern) for pattern in _exceptions())
    ]
    assert problems == []


def test_every_exception_is_needed(theirs: Surface) -> None:
    names = [name for name, _ in _differences(theirs)]
    unneeded = [
        pattern
        for pattern in _exceptions()
        if not any(fnmatchcase(name, pattern) for name in names)
    ]
    assert unneeded == []


def test_every_exception_has_a_reason() -> None:
    assert all(reason.strip() for reason in _exceptions().values())


def _differences(theirs: Surface) -> Iterator[tuple[str, str]]:
    ours = _ours()
    for name, wanted in theirs.items():
        if name not in ours:
            owner = name.rpartition(".")[0]
            if owner not in theirs or owner in ours:
                yield name, "missing"
            continue
        mine = ours[name]
        if wanted is not None and mine is None:
            yield name, "cannot be called"
        elif wanted is not None and mine is not None:
            for problem in _parameter_problems(wanted, mine):
                yield name, problem


def _parameter_problems(wanted: list[Parameter], mine: list[Parameter]) -> Iterator[str]:
    known = {name: default for name, _, default in mine}
    for name, kind, default in wanted:
        if kind.startswith("VAR_"):
            continue
        if name not in known:
            yield f"no argument {name}"
        elif default is not None and known[name] != default:
            yield f"{name} defaults to {known[name]}, not {default}"
    if _positions(mine)[: len(_positions(wanted))] != _positions(wanted):
        yield f"positional arguments are {_positions(mine)}, not {_positions(wanted)}"


def _positions(parameters: list[Parameter]) -> list[str]:
    return [name for name, kind, _ in parameters if kind.startswith("POSITIONAL")]
