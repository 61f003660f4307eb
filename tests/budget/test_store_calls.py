"""Budgets of store calls per operation.

Reads of data files by the codec are not counted; the ends of those in object stores are read by
us, before the codec opens a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import lancelake.pylance as lance
from lancelake.data.fragment_reader import DELETIONS
from lancelake.feed.changed_rows import run
from lancelake.pylance import LanceDataset
from lancelake.storage import location
from lancelake.storage.location import LocalStore, Location, cloud_store, default_session
from tests.support.counting_store import CountingStore
from tests.support.read_tables import varied, versioned
from tests.support.s3_server import s3_server

Call = tuple[str, str]


class Account:
    """Every call made to any store since the last reset."""

    def __init__(self) -> None:
        self._stores: list[CountingStore] = []

    def counted(self, store: CountingStore) -> CountingStore:
        """Keep an account of this store too."""
        self._stores.append(store)
        return store

    def of(self, operation: Callable[[], object]) -> list[Call]:
        """Run something and return its calls, paths without names that chance gave."""
        self._stores.clear()
        operation()
        return [(call, _kind(path)) for store in self._stores for call, path in store.paths]


def _kind(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return folder if name.endswith((".manifest", ".lance", ".arrow", ".bin")) else path


@pytest.fixture(scope="module", params=["disk", "s3"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Location]:
    """Return a place with two tables."""
    root = tmp_path_factory.mktemp("budget")
    varied(root / "varied.lance", stable_row_ids=True)
    versioned(root / "versioned.lance")
    if request.param == "disk":
        yield Location.parse(root)
        return
    with s3_server() as server:
        bucket = Location.parse(f"s3://{server.new_bucket()}/tables", server.storage_options)
        store = bucket.store
        for path in root.rglob("*"):
            if path.is_file():
                store.put(str(path.relative_to(root)), path.read_bytes())
        yield bucket


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """Count the calls of every store that is opened from now on, when nothing is known yet."""
    account = Account()
    default_session().caches[DELETIONS].clear()
    disk, cloud = LocalStore, cloud_store
    monkeypatch.setattr(
        location, "LocalStore", lambda uri: account.counted(CountingStore(disk(uri)))
    )
    monkeypatch.setattr(
        location, "cloud_store", lambda *where: account.counted(CountingStore(cloud(*where)))
    )
    return account


@pytest.fixture
def opened(place: Location) -> Callable[..., LanceDataset]:
    """Return a function that opens a table."""

    def opened(name: str, *args: object, **options: object) -> LanceDataset:
        uri = f"{place.uri}/{name}.lance"
        return lance.dataset(uri, *args, storage_options=place.storage_options, **options)

    return opened


Open = Callable[..., LanceDataset]
MANIFEST = ("get", "_versions")
OPENED = ("get_suffix", "data")


def test_latest_version_is_found_in_four_calls(account: Account, opened: Open) -> None:
    calls = account.of(lambda: opened("versioned"))
    assert len(calls) <= 4
    assert calls.count(MANIFEST) == 1


def test_version_by_number_is_opened_in_two_calls(account: Account, opened: Open) -> None:
    calls = account.of(lambda: opened("versioned", 2))
    assert len(calls) <= 2
    assert calls.count(MANIFEST) == 1


def test_tag_costs_one_call_more(account: Account, opened: Open) -> None:
    calls = account.of(lambda: opened("versioned", "first"))
    assert len(calls) <= 3
    assert ("get", "_refs/tags/first.json") in calls


def test_branch_costs_one_call_more(account: Account, opened: Open) -> None:
    assert len(account.of(lambda: opened("versioned", ("feat/x", None)))) <= 5


def test_other_version_of_an_open_table_costs_no_more(account: Account, opened: Open) -> None:
    table = opened("versioned")
    assert len(account.of(lambda: table.checkout_version(2))) <= 2


def test_time_reads_manifests_only_back_to_it(account: Account, opened: Open) -> None:
    calls = account.of(lambda: opened("versioned", asof="2999-01-01"))
    assert calls == [("list_names", "_versions"), MANIFEST]


def test_history_reads_every_manifest_once(account: Account, opened: Open) -> None:
    table = opened("versioned")
    listing = ("list", "_versions")
    assert account.of(table.versions) == [listing, *[MANIFEST] * 4]
    assert account.of(table.versions) == [listing]


def test_tags_are_read_once_each(account: Account, opened: Open) -> None:
    table = opened("versioned")
    assert len(account.of(table.tags.list)) == 1 + 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda table: table.schema,
        lambda table: table.count_rows(),
        lambda table: table.get_fragments(),
        lambda table: table.list_indices(),
        lambda table: table.config(),
        lambda table: table.stats.dataset_stats(),
        lambda table: table.scanner(filter="key > 1", limit=3, columns=["_rowoffset"]),
        lambda table: table.to_table(limit=0),
        lambda table: table.take([]),
    ],
    ids=[
        *("schema", "rows", "fragments", "indices", "config", "statistics"),
        *("plan", "no rows", "no numbers"),
    ],
)
def test_facts_of_the_manifest_need_no_calls(
    account: Account, opened: Open, ask: Callable[[LanceDataset], object]
) -> None:
    table = opened("varied")
    assert account.of(lambda: ask(table)) == []


def test_scan_reads_each_deletion_file_once(account: Account, opened: Open) -> None:
    table = opened("varied")
    calls = account.of(lambda: table.to_table(["key", "n", "z"]))
    assert [call for call in calls if call != OPENED] == [("get", "_deletions")] * 4


def test_a_small_file_in_a_store_is_read_with_one_call(account: Account, opened: Open) -> None:
    default_session().caches.clear()
    table = opened("varied")
    calls = account.of(lambda: table.to_table(["key", "n", "z"]))
    reads = [call for call in calls if call[1] == "data"]
    files = {file.path for fragment in table.get_fragments() for file in fragment.data_files()}
    is_local = "://" not in table.uri
    assert reads == ([] if is_local else [OPENED] * len(files))


def test_second_scan_reads_no_deletion_file(account: Account, opened: Open) -> None:
    ds = opened("varied")
    ds.to_table()
    assert account.of(ds.to_table) == []


def test_filter_reads_each_deletion_file_once(account: Account, opened: Open) -> None:
    table = opened("varied")
    calls = account.of(lambda: table.to_table(["key"], "key > 3", late_materialization=True))
    assert calls == [("get", "_deletions")] * 4


def test_limit_reads_only_the_fragments_it_needs(account: Account, opened: Open) -> None:
    table = opened("varied")
    assert account.of(lambda: table.to_table(["key"], limit=3)) == [("get", "_deletions")]


def test_row_ids_are_in_the_manifest(account: Account, opened: Open) -> None:
    table = opened("varied")
    calls = account.of(lambda: table.to_table(["_rowid", "_row_created_at_version"]))
    assert calls == [("get", "_deletions")] * 4


def test_row_is_taken_from_its_fragment_alone(account: Account, opened: Open) -> None:
    table = opened("varied")
    assert account.of(lambda: table.take([26], columns=["key"])) == []
    assert account.of(lambda: table.take([0], columns=["key"])) == [("get", "_deletions")]


def test_renamed_column_costs_no_call(account: Account, opened: Open) -> None:
    table = opened("varied")
    table.to_table(["text"])
    assert account.of(lambda: table.to_table(["text"])) == []


def test_transaction_in_the_manifest_costs_no_call_of_its_own(
    account: Account, opened: Open
) -> None:
    table = opened("versioned")
    assert len(account.of(lambda: table.read_transaction(3))) <= 2


def test_scan_lists_no_folder(account: Account, opened: Open) -> None:
    calls = account.of(lambda: opened("varied", 3).to_table())
    assert not any(call.startswith("list") for call, _ in calls)


def test_changes_read_each_manifest_of_their_range_once(account: Account, opened: Open) -> None:
    table = opened("varied")
    calls = account.of(lambda: table.plan_changes(6))
    assert calls.count(MANIFEST) == table.version - 6
    assert len(calls) <= 2 * (table.version - 6)


def test_net_changes_read_two_manifests_however_many_versions_are_between(
    account: Account, opened: Open
) -> None:
    table = opened("varied")
    assert account.of(lambda: table.plan_changes(6, net=True)).count(MANIFEST) == 1


def test_changes_read_the_deletions_that_changed(account: Account, opened: Open) -> None:
    table = opened("varied")
    plan = table.plan_changes(7, 8)
    calls = account.of(lambda: run(plan).read_all())
    assert calls == [("get", "_deletions")]
