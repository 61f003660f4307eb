"""`lancelake.torch` has the data sets and samplers of the Python face."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own: other tests load modules again.
PROGRAM = """
import lancelake.pylance.sampler, lancelake.pylance.torch.data, lancelake.torch
homes = (lancelake.pylance.torch.data, lancelake.pylance.sampler)
for name in lancelake.torch.__all__:
    home = next(module for module in homes if name in module.__all__)
    assert getattr(lancelake.torch, name) is getattr(home, name), name
print(len(lancelake.torch.__all__))
"""


def test_data_sets_and_samplers_are_those_of_the_python_face() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "9\n"), done.stderr
