"""A cache forgets what was not used for longest, by number or by weight."""

from __future__ import annotations

from lancelake.data.recently_used import RecentlyUsed, cached_by_identity


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
