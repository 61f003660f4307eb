"""Sources of time and randomness."""

from __future__ import annotations

import pickle

from lancelake.clock import SystemIds


def test_chance_travels_to_another_process() -> None:
    copy = pickle.loads(pickle.dumps(SystemIds()))
    assert copy.uuid4() != SystemIds().uuid4()


def test_a_seed_travels_to_another_process() -> None:
    ids = SystemIds(7)
    assert pickle.loads(pickle.dumps(ids)).uuid4() == SystemIds(7).uuid4()
