"""Values that faces take from the core."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

from lancelake.core import values
from lancelake.core.values import reads

HUBS = [f"{values.__name__}.{module.name}" for module in pkgutil.iter_modules(values.__path__)]


@pytest.mark.parametrize("name", HUBS)
def test_every_name_that_type_checkers_see_loads(name: str) -> None:
    hub = importlib.import_module(name)
    names = values.imported_names(name)
    assert len(names) > 1
    assert all(getattr(hub, each) is not None for each in names if each != "TYPE_CHECKING")


def test_other_names_are_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"core\.values\.reads' has no attribute 'Nothing'"):
        reads.Nothing  # type: ignore[attr-defined]  # noqa: B018


def test_a_value_loads_only_its_own_module() -> None:
    code = (
        "import sys; from lancelake.core.values.reads import RowOffsets\n"
        "assert 'lancelake.scan.search.prepared' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
