"""Safety of the local store."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lancelake.errors import (
    AlreadyExistsError,
    ObjectNotFoundError,
    PlaceNotAllowedError,
    StorageDeniedError,
    StorageError,
    UnsupportedError,
)
from lancelake.storage import local
from lancelake.storage.local import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths that were made durable, in order."""
    seen: list[str] = []
    fsync = os.fsync

    def watched(fd: int) -> None:
        seen.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", watched)
    return seen


def test_name_with_percent_is_literal_on_disk(store: LocalStore, tmp_path: Path) -> None:
    store.put("_refs/branches/feature%2Fx.json", b"{}")
    assert [p.name for p in (tmp_path / "_refs/branches").iterdir()] == ["feature%2Fx.json"]


@pytest.mark.parametrize("write", ["put", "create"])
def test_write_is_durable_with_its_new_folders(
    write: str, store: LocalStore, tmp_path: Path, synced: list[str]
) -> None:
    getattr(store, write)("a/b/c", b"bytes")
    root = str(tmp_path)
    assert synced == [root, f"{root}/a", f"{root}/a/b/c#1", f"{root}/a/b"]


def test_failed_write_leaves_no_file(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="No space left"):
        store.put("a", b"bytes")
    assert list(tmp_path.iterdir()) == []


def test_folder_below_a_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    with pytest.raises(StorageError, match="Not a folder"):
        LocalStore(str(tmp_path / "link" / "root")).put("a/b", b"x")


def test_partial_write_is_completed(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:2])))
    store.put("a", b"12345")
    assert store.get("a") == b"12345"


def test_partial_read_is_completed(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.put("a", b"12345")
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, length, start: pread(fd, min(2, length), start))
    assert store.get("a") == b"12345"


def test_copy_of_several_chunks_is_whole(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lancelake.storage.local._CHUNK_BYTES", 4)
    store.put("a", b"0123456789")
    store.copy("a", "b")
    assert store.get("b") == b"0123456789"


def test_unfinished_files_are_not_listed(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "1.manifest#1").write_bytes(b"half")
    (tmp_path / "1.manifest").write_bytes(b"whole")
    assert store.list_names("") == ["1.manifest"]
    assert [info.path for info in store.list()] == ["1.manifest"]


def test_unfinished_file_of_another_writer_is_left_alone(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "a#1").write_bytes(b"half")
    store.put("a", b"mine")
    assert (tmp_path / "a#1").read_bytes() == b"half"


def test_racing_puts_never_mix(store: LocalStore) -> None:
    def run(me: bytes) -> None:
        for _ in range(10):
            store.put("a", me * 1000)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, [b"1", b"2", b"3", b"4"]))
    assert len(set(store.get("a"))) == 1
    assert store.list_names("") == ["a"]


def test_create_where_links_are_unknown_is_unsupported(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(UnsupportedError, match="hard links"):
        store.create("a", b"1")
    assert list(tmp_path.iterdir()) == []


def test_create_over_a_folder_is_taken(store: LocalStore) -> None:
    store.put("dir/a", b"1")
    with pytest.raises(AlreadyExistsError):
        store.create("dir", b"1")


def test_put_over_a_folder_is_an_error(store: LocalStore) -> None:
    store.put("dir/a", b"1")
    with pytest.raises(StorageError):
        store.put("dir", b"1")


def test_put_below_an_object_is_an_error(store: LocalStore) -> None:
    store.put("a", b"1")
    with pytest.raises(StorageError):
        store.put("a/b", b"1")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_forbidden_read_is_denied_and_not_absent(
    code: int, store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object, **__: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "stat", forbidden)
    with pytest.raises(StorageDeniedError):
        store.exists("a")


def test_forbidden_folder_is_denied_and_not_empty(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(_: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", forbidden)
    with pytest.raises(StorageDeniedError):
        store.list_names("a")


def test_broken_link_is_absent(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "gone")
    assert store.list_names("") == []
    assert list(store.list()) == []
    with pytest.raises(ObjectNotFoundError):
        store.get("a")


def test_put_below_a_broken_link_is_an_error(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "dir").symlink_to(tmp_path / "gone")
    with pytest.raises(StorageError):
        store.put("dir/a", b"1")


@pytest.mark.parametrize("prefix", ["", "link", "link/below"])
def test_linked_folder_is_not_listed(store: LocalStore, tmp_path: Path, prefix: str) -> None:
    store.put("real/below/a", b"1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    expected = [] if prefix else ["real/below/a"]
    assert [info.path for info in store.list(prefix)] == expected


def test_object_behind_a_link_is_read(store: LocalStore, tmp_path: Path) -> None:
    store.put("real/a", b"1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert store.get("link/a") == b"1"


def test_link_that_leads_to_itself_is_not_listed(store: LocalStore, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "loop").symlink_to(tmp_path / "folder" / "loop")
    assert list(store.list()) == []
    assert store.list_names("folder") == []
    assert store.list_dirs("folder") == []
    with pytest.raises(StorageError):
        store.get("folder/loop")


def test_pipe_is_no_object(store: LocalStore, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ObjectNotFoundError):
        store.get("pipe")
    with pytest.raises(ObjectNotFoundError):
        store.get_suffix("pipe", length=8)
    assert not store.exists("pipe")


@pytest.mark.parametrize(("start", "length"), [(0, 1 << 60), (1 << 60, 1), (1 << 64, 1 << 64)])
def test_room_is_made_only_for_what_a_file_has(store: LocalStore, start: int, length: int) -> None:
    store.put("a", b"1")
    with pytest.raises(StorageError):
        store.get_range("a", start=start, length=length)


@pytest.fixture
def confined(tmp_path: Path) -> LocalStore:
    """A store that may reach `table` and `shared`, with links out of them."""
    for name in ("table", "shared", "outside"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    for name in ("shared", "outside"):
        (tmp_path / "table" / f"to_{name}").symlink_to(tmp_path / name)
    (tmp_path / "table" / "linked_file").symlink_to(tmp_path / "outside" / "file")
    roots = tuple(str(tmp_path / name) for name in ("table", "shared"))
    return LocalStore(str(tmp_path / "table"), within=roots)


def test_confined_store_reads_what_is_within(confined: LocalStore) -> None:
    assert confined.get("file") == b"table"
    assert confined.get("to_shared/file") == b"shared"


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.get("to_outside/file"),
        lambda store: store.get("linked_file"),
        lambda store: store.head("linked_file"),
        lambda store: store.get_range("linked_file", start=0, length=1),
        lambda store: store.get_suffix("linked_file", length=1),
        lambda store: store.copy("linked_file", "copy"),
        lambda store: store.put("to_outside/new", b"x"),
        lambda store: store.create("to_outside/new", b"x"),
        lambda store: store.delete("to_outside/file"),
        lambda store: store.list_names("to_outside"),
        lambda store: store.list_dirs("to_outside"),
    ],
)
def test_confined_store_does_not_leave_through_links(
    confined: LocalStore, tmp_path: Path, call: Callable[[LocalStore], object]
) -> None:
    with pytest.raises(PlaceNotAllowedError):
        call(confined)
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["file"]


def test_confined_store_deletes_a_link_itself(confined: LocalStore, tmp_path: Path) -> None:
    confined.delete("linked_file")
    assert not (tmp_path / "table" / "linked_file").is_symlink()
    assert (tmp_path / "outside" / "file").exists()


def test_suffix_opens_one_file_and_looks_at_no_other(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("a", b"0123456789")
    calls: list[str] = []
    for name in ("open", "stat", "scandir", "listdir"):
        original = getattr(os, name)
        monkeypatch.setattr(
            os,
            name,
            lambda *a, name=name, original=original, **k: (calls.append(name), original(*a, **k))[
                1
            ],
        )
    store.get_suffix("a", length=4)
    assert calls == ["open"]


def test_an_interrupt_after_a_file_got_its_name_is_raised(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = local._replace

    def interrupted(staged: str, full: str) -> None:
        real(staged, full)
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "_replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.put("a/b", b"data")
