"""Signatures of methods that change a table match those of official releases."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest

import lancelake.pylance as lance
from lancelake.pylance._dataset.arguments import NOT_OFFERED, TUNING
from lancelake.pylance._dataset.refs import Branches, Tags
from lancelake.pylance._dataset.write import write_options
from lancelake.pylance.fragment import LanceFragment, write_fragments
from tests.support.official import Official

CALLS: dict[str, Callable[..., Any]] = {
    "write_dataset": lance.write_dataset,
    "write_fragments": write_fragments,
    **{
        f"LanceDataset.{name}": getattr(lance.LanceDataset, name)
        for name in (
            "add_bases",
            "checkout_latest",
            "checkout_version",
            "cleanup_old_versions",
            "commit",
            "commit_batch",
            "commit_existing_index_segments",
            "create_branch",
            "create_index",
            "create_index_uncommitted",
            "create_scalar_index",
            "deep_clone",
            "delete_config_keys",
            "describe_indices",
            "drop",
            "drop_index",
            "explain_cleanup_old_versions",
            "get_transactions",
            "index_statistics",
            "insert",
            "list_indices",
            "merge_existing_index_segments",
            "merge_index_metadata",
            "migrate_manifest_paths_v2",
            "prewarm_index",
            "read_transaction",
            "replace_field_metadata",
            "replace_schema_metadata",
            "restore",
            "shallow_clone",
            "update_config",
            "update_field_metadata",
            "update_metadata",
            "update_schema_metadata",
            "validate",
        )
    },
    "LanceFragment.create": LanceFragment.create,
    "LanceFragment.create_from_file": LanceFragment.create_from_file,
    **{
        f"Tags.{name}": getattr(Tags, name)
        for name in (
            "create",
            "delete",
            "get_version",
            "list",
            "list_ordered",
            "replace_metadata",
            "update",
        )
    },
    **{
        f"Branches.{name}": getattr(Branches, name)
        for name in ("delete", "list", "list_ordered", "replace_metadata")
    },
}
CODE = """
import importlib, inspect
dataset = importlib.import_module("lance.dataset")
fragment = importlib.import_module("lance.fragment")
found = {}
for name in names:
    place = fragment if name.startswith(("write_fragments", "LanceFragment")) else dataset
    value = place
    for part in name.split("."):
        value = getattr(value, part, None)
    if value is not None:
        found[name] = [
            [p.name, p.kind.name, None if p.default is p.empty else repr(p.default)]
            for p in inspect.signature(value).parameters.values()
        ]
result = found
"""
# Arguments whose kind differs between releases.
MOVED = {"base_store_params", "commit_timeout"}
REST = {"kwargs", "rest", "options"}


@pytest.fixture(scope="module", params=["4.0.2", "14.0.2"])
def theirs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, list[tuple[str, str, str | None]]]:
    """Return the arguments that a release takes: name, kind and default."""
    release: Official = request.getfixturevalue(
        "official_4" if request.param == "4.0.2" else "official_14"
    )
    found: dict[str, Any] = release.run(
        str(tmp_path_factory.mktemp("signatures")), CODE, names=list(CALLS)
    )
    return {name: [tuple(p) for p in parameters] for name, parameters in found.items()}


def _accepted(call: Callable[..., Any]) -> dict[str, tuple[str, str | None]]:
    """Return what a call of ours takes, the options that it hands on included."""
    own = inspect.signature(call).parameters
    handed_on = inspect.signature(write_options).parameters if "options" in own else {}
    found = {
        name: (p.kind.name, None if p.default is p.empty else repr(p.default))
        for name, p in {**handed_on, **own}.items()
    }
    if own.keys() & REST:
        extra = (TUNING | NOT_OFFERED) - found.keys()
        found |= dict.fromkeys(extra, ("KEYWORD_ONLY", "None"))
    return found


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_a_release_are_taken(
    theirs: Mapping[str, list[tuple[str, str, str | None]]], name: str
) -> None:
    if name not in theirs:
        pytest.skip("not in this release")
    ours = _accepted(CALLS[name])
    for argument, kind, default in theirs[name]:
        if argument == "self" or kind == "VAR_KEYWORD":
            continue
        assert argument in ours, argument
        mine_kind, mine_default = ours[argument]
        if argument in TUNING | NOT_OFFERED:
            continue
        assert mine_default == default, argument
        assert mine_kind == kind or argument in MOVED, argument


@pytest.mark.parametrize("name", ["LanceDataset.commit", "LanceDataset.commit_batch"])
def test_positions_are_those_of_the_newest_release(official_14: Official, name: str) -> None:
    found: dict[str, Any] = official_14.run("unused", CODE, names=[name])
    order = [p[0] for p in found[name] if p[1] == "POSITIONAL_OR_KEYWORD"]
    ours = inspect.signature(CALLS[name]).parameters.values()
    assert [p.name for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD] == order


def test_a_commit_may_take_half_an_hour() -> None:
    default = inspect.signature(lance.LanceDataset.commit).parameters["commit_timeout"].default
    assert default == timedelta(minutes=30)


def test_every_offered_name_is_documented() -> None:
    assert all(inspect.getdoc(call) for call in CALLS.values())
