"""A cache forgets what was not used for longest, by number or by weight."""

from __future__ import annotations

import pytest

from lancelake.caches import CacheKind, Caches, RecentlyUsed, cached_by_identity


def test_what_was_used_last_is_kept() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(2)
    for key in ("a", "b"):
        cache.get(key, lambda: 1)
    assert cache.find("a") == 1
    cache.get("c", lambda: 3)
    assert [cache.peek(key) for key in ("a", "b", "c")] == [1, None, 3]


def test_values_that_are_found_together_count_as_used() -> None:
    cache: RecentlyUsed[str, int] = RecentlyUsed(3)
    for number, key in enumerate(("a", "b", "c")):
        cache.put(key, number)
    assert cache.find_all(["b", "x", "a"]) == [1, None, 0]
    cache.put("d", 3)
    assert [cache.peek(key) for key in ("a", "b", "c")] == [0, 1, None]


def test_weights_add_up_to_the_size() -> None:
    cache: RecentlyUsed[str, bytes] = RecentlyUsed(10, weight=len)
    cache.put("a", b"12345")
    cache.put("b", b"1234")
    cache.put("a", b"1")
    cache.put("c", b"12345")
    assert [cache.peek(key) for key in ("a", "b", "c")] == [b"1", b"1234", b"12345"]
    cache.put("d", b"1")
    assert cache.peek("b") is None


def test_a_value_beyond_the_size_is_returned_and_not_kept() -> None:
    cache: RecentlyUsed[str, bytes] = RecentlyUsed(2, weight=len)
    assert cache.get("a", lambda: b"123") == b"123"
    assert cache.find("a") is None


def test_results_are_cached_by_the_identity_of_the_argument() -> None:
    computed: list[tuple[int, ...]] = []

    @cached_by_identity(2)
    def length(items: tuple[int, ...]) -> int:
        computed.append(items)
        return len(items)

    first = (1, 2)
    equal = (*first,)
    assert first is not equal
    assert [length(first), length(first), length(equal)] == [2, 2, 2]
    assert len(computed) == 2


def test_a_cache_recovers_from_an_exception_between_two_changes() -> None:
    raises = [False]

    def weight(value: int) -> int:
        if raises[0]:
            raise KeyboardInterrupt
        return value

    cache: RecentlyUsed[str, int] = RecentlyUsed(3, weight=weight)
    for _ in range(5):
        cache.put("a", 3)
        raises[0] = True
        with pytest.raises(KeyboardInterrupt):
            cache.put("a", 3)
        raises[0] = False
    cache.put("b", 2)
    cache.put("c", 1)
    assert (cache.peek("b"), cache.peek("c")) == (2, 1)


TEXTS: CacheKind[str, bytes] = CacheKind(name="texts", most_bytes=10, weight=len)
FILES: CacheKind[int, bytes] = CacheKind(name="files", most_bytes=100, weight=len, most_values=2)


def test_each_kind_has_its_bound() -> None:
    caches = Caches()
    for number in range(3):
        caches[TEXTS].put(f"{number}", b"12345")
        caches[FILES].put(number, b"1")
    assert caches.sizes == {"files": 2, "texts": 10}
    assert caches[FILES].peek(0) is None


def test_a_limit_replaces_the_bound_of_a_kind() -> None:
    caches = Caches(limits={"texts": 4})
    caches[TEXTS].put("a", b"12345")
    assert caches.used == 0


def test_the_largest_cache_forgets_what_is_beyond_the_bound_of_all() -> None:
    caches = Caches(most_bytes=12)
    caches[FILES].put(1, b"12345678")
    caches[FILES].put(2, b"12")
    caches[TEXTS].put("a", b"123456")
    assert (caches[FILES].peek(1), caches[FILES].peek(2)) == (None, b"12")
    assert (caches[TEXTS].peek("a"), caches.used) == (b"123456", 8)


def test_kinds_without_a_limit_are_shared() -> None:
    shared = Caches()
    own = Caches(limits={"texts": 5}, most_bytes=5, shared=shared)
    own[TEXTS].put("a", b"123")
    own[FILES].put(1, b"12345678")
    assert (own.sizes, shared.sizes) == ({"texts": 3}, {"files": 8})


def test_cleared_caches_are_empty_and_stay_usable() -> None:
    caches = Caches()
    caches[TEXTS].put("a", b"123")
    caches.clear()
    assert (caches.used, caches[TEXTS].find("a")) == (0, None)
    caches[TEXTS].put("a", b"123")
    assert repr(caches) == f"Caches(most_bytes={caches.most_bytes}, used=3, texts=3)"


def test_a_value_that_changes_is_removed_with_the_weight_it_was_added_with() -> None:
    cache: RecentlyUsed[str, list[int]] = RecentlyUsed(10, weight=len)
    value = [1, 2]
    cache.put("a", value)
    value.append(3)
    cache.forget(lambda _: True)
    assert cache.used == 0
