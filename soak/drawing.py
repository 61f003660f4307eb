"""Draw the next operation of a process from a deck, so that every kind occurs regularly."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from soak.history import FIRST
from soak.table import ACCOUNTS, BASE, POOL, own_keys, own_pool

DECK = Counter(
    append=8,
    delete=5,
    update=5,
    transfer=8,
    upsert=6,
    insert=3,
    scan=3,
    pinned=2,
    travel=2,
    changes=2,
    compact=2,
    cleanup=2,
    tag=1,
    branch=1,
    restore=1,
    add_column=2,
    drop_column=2,
    create_index=3,
    refresh_index=3,
    drop_index=1,
    filtered=8,
)
"""How often each operation comes before all cards are dealt again."""
INDICES = (("v", "BTREE"), ("by", "BITMAP"), ("by", "BTREE"))
"""Columns with the kinds of their indices."""
MISREAD_INDICES = (("id", "BTREE"), ("v", "ZONEMAP"))
"""Indices that release 4.0.2 misreads in tables with stable row ids: by an index of the key, its
upserts miss keys."""
_RECENT = 12
_FEW_ROWS = 400
"""Below this, rows are rather added than removed."""

Drawn = tuple[str, dict[str, Any]]


class Drawing:
    """Draws operations and their arguments, given what a table holds."""

    def __init__(
        self,
        chance: random.Random,
        *,
        slot: int,
        incarnation: int,
        is_official: bool,
        is_keyed: bool,
        has_feed: bool,
        retention_s: float,
        is_blind: bool = False,
        is_stable: bool = False,
        deck: Counter[str] = DECK,
    ) -> None:
        """Begin with a new deck."""
        self._cards = deck
        self.number = 0
        self._chance = chance
        self._slot = slot
        self._incarnation = incarnation
        self._has_feed = has_feed
        self._retention_s = retention_s
        # Official merges notice each other's new keys by the declared key only.
        self._pool = POOL if is_keyed or not is_official else own_pool(slot)
        # One that is blind does not notice them at all when it only inserts.
        self._new_pool = own_pool(slot) if is_blind else self._pool
        self._indices = INDICES if is_stable else (*INDICES, *MISREAD_INDICES)
        self._deck: list[str] = []

    def draw(self, ds: Any) -> Drawn:
        """Return the next operation and its arguments."""
        self.number += 1
        if not self._deck:
            self._deck = list(self._cards.elements())
            self._chance.shuffle(self._deck)
        kind = self._deck.pop()
        args = getattr(self, f"_{kind}")(ds)
        return ("scan", {}) if args is None else (kind, args)

    def _append(self, _: Any) -> dict[str, Any]:
        count = self._chance.randint(1, 20)
        return {
            "ids": own_keys(self._slot, self._incarnation, self.number, count),
            "value": self._chance.randrange(1000),
        }

    def _stream(self, _: Any) -> dict[str, Any]:
        return self._append(_)

    def _delete(self, ds: Any) -> dict[str, Any] | None:
        keys = _keys(ds)
        most = 8 if len(keys) < _FEW_ROWS else 60
        return {"ids": self._some(keys, most)} if keys else None

    def _update(self, ds: Any) -> dict[str, Any] | None:
        keys = _keys(ds)
        add = self._chance.randint(1, 100)
        return {"ids": self._some(keys, 5), "add": add} if keys else None

    def _transfer(self, _: Any) -> dict[str, Any]:
        source, target = self._chance.sample(ACCOUNTS, 2)
        return {"source": source, "target": target, "amount": self._chance.randint(1, 50)}

    def _upsert(self, _: Any) -> dict[str, Any]:
        return {"ids": self._some(self._pool, 8), "value": self._chance.randrange(1000)}

    def _insert(self, _: Any) -> dict[str, Any]:
        return {"ids": self._some(self._new_pool, 8), "value": self._chance.randrange(1000)}

    def _scan(self, _: Any) -> dict[str, Any]:
        return {}

    def _pinned(self, ds: Any) -> dict[str, Any]:
        return {"version": self._recent(ds)}

    def _travel(self, ds: Any) -> dict[str, Any] | None:
        tags = sorted(ds.tags.list())
        return {"tag": self._chance.choice(tags)} if tags else None

    def _changes(self, ds: Any) -> dict[str, Any] | None:
        begin = self._recent(ds)
        return {"begin": begin, "end": ds.version} if self._has_feed else None

    def _compact(self, _: Any) -> dict[str, Any]:
        return {}

    def _cleanup(self, ds: Any) -> dict[str, Any] | None:
        has_it = hasattr(ds, "cleanup_old_versions")
        return {"seconds": self._retention_s} if has_it else None

    def _tag(self, ds: Any) -> dict[str, Any]:
        return {"name": self._name("t"), "version": ds.version}

    def _branch(self, ds: Any) -> dict[str, Any]:
        ids = own_keys(self._slot, self._incarnation, self.number, 3)
        return {"name": self._name("b"), "version": ds.version, "ids": ids}

    def _restore(self, ds: Any) -> dict[str, Any]:
        return {"version": self._recent(ds)}

    def _add_column(self, _: Any) -> dict[str, Any]:
        return {"name": self._name("c")}

    def _drop_column(self, ds: Any) -> dict[str, Any] | None:
        names = sorted(set(ds.schema.names) - set(BASE))
        return {"name": self._chance.choice(names)} if names else None

    def _create_index(self, _: Any) -> dict[str, Any]:
        column, kind = self._chance.choice(self._indices)
        return {"column": column, "kind": kind, "name": f"{column}_{kind.lower()}"}

    def _refresh_index(self, ds: Any) -> dict[str, Any] | None:
        return {} if _index_names(ds) else None

    def _drop_index(self, ds: Any) -> dict[str, Any] | None:
        names = _index_names(ds)
        return {"name": self._chance.choice(names)} if names else None

    def _filtered(self, _: Any) -> dict[str, Any]:
        low, high = sorted(self._chance.sample(range(1000), 2))
        pool = ", ".join(map(str, self._some(POOL, 20)))
        forms = (
            f"id IN ({pool})",
            f"id < {POOL[low % len(POOL)]}",
            f"v >= {low} AND v < {high}",
            f"v = {low}",
            f"v > {high} OR id = {POOL[low % len(POOL)]}",
            f"by = '{FIRST}'",
            f"by >= '{self._slot}' AND v < {high}",
        )
        return {"filter": self._chance.choice(forms)}

    def _name(self, prefix: str) -> str:
        return f"{prefix}_{self._slot}_{self._incarnation}_{self.number}"

    def _recent(self, ds: Any) -> int:
        return self._chance.randint(max(1, ds.version - _RECENT), ds.version)

    def _some(self, keys: Any, most: int) -> list[int]:
        return sorted(self._chance.sample(keys, min(len(keys), self._chance.randint(1, most))))


def _index_names(ds: Any) -> list[str]:
    """Return the names of the indices that a table has."""
    found = {index["name"] for index in ds.list_indices()}
    return sorted(name for name in found if not name.startswith("__"))


def _keys(ds: Any) -> list[int]:
    """Return the keys that a table has, but for the accounts."""
    found = ds.to_table(columns=["id"])["id"].to_pylist()
    return sorted(set(found) - set(ACCOUNTS))
