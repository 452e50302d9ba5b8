"""Archives in memory: every entry a file of its own, every limit kept, no name trusted."""

import gzip
import io
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.errors import FileError, FileTooLarge, UnreadableFile
from lib.results.archives import entries, is_archive

DOCUMENT = b'{"a": 1}'


def packed(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


def read_all(data: bytes, name: str = "r.zip") -> dict[str, bytes]:
    return {entry.name: entry.read() for entry in entries(name, data)}


def test_paths_of_a_zip_are_kept_behind_its_name() -> None:
    data = packed({"k4/c8/run.json": DOCUMENT, "k4/notes.txt": b"hello"})
    assert is_archive(data)
    assert read_all(data) == {"r.zip/k4/c8/run.json": DOCUMENT, "r.zip/k4/notes.txt": b"hello"}


def test_a_file_is_read_from_disk_only_when_it_is_asked_for(tmp_path: object) -> None:
    path = tmp_path / "r.zip"  # type: ignore[operator]
    path.write_bytes(packed({"a.json": DOCUMENT}))
    assert [entry.read() for entry in entries("r.zip", path)] == [DOCUMENT]
    path.with_suffix(".gz").write_bytes(gzip.compress(DOCUMENT))
    assert [e.read() for e in entries("a.json.gz", path.with_suffix(".gz"))] == [DOCUMENT]


def test_a_gzip_file_is_the_file_in_it() -> None:
    assert read_all(gzip.compress(DOCUMENT), "c8.json.gz") == {"c8.json": DOCUMENT}


def test_hidden_and_empty_files_and_folders_are_left_out() -> None:
    hidden = {".DS_Store": b"x", "__MACOSX/a.json": b"x", "a/.git/b": b"x", "empty.json": b""}
    assert read_all(packed({**hidden, "folder/": b"", "a.json": DOCUMENT})) == {
        "r.zip/a.json": DOCUMENT
    }


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..\\..\\etc\\passwd", "a/../../etc/passwd"]
)
def test_no_name_leads_out_of_its_archive(name: str) -> None:
    (found,) = read_all(packed({name: DOCUMENT}))
    assert found in ("r.zip/etc/passwd", "r.zip/a/etc/passwd")


def test_a_name_of_control_characters_stays_on_its_line() -> None:
    (found,) = read_all(packed({"a\n\x1b[31mb.json": DOCUMENT}))
    assert found.isprintable()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: packed({"a.json": DOCUMENT})[:-30], "not a whole zip file"),
        (lambda: b"PK\x03\x04rest", "not a whole zip file"),
        (lambda: packed({"[Content_Types].xml": b"<x/>", "xl/a.xml": b"<x/>"}), "as CSV"),
    ],
)
def test_an_archive_that_cannot_be_used(make: Callable[[], bytes], says: str) -> None:
    with pytest.raises(UnreadableFile, match=says):
        list(entries("r.zip", make()))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: gzip.compress(DOCUMENT * 99)[:-12], "not a whole gzip file"),
        (lambda: b"\x1f\x8brest", "not a whole gzip file"),
        (lambda: gzip.compress(gzip.compress(DOCUMENT)), "archive inside an archive"),
        (lambda: packed({"a.zip": packed({"b.json": DOCUMENT})}), "archive inside an archive"),
        (lambda: gzip.compress(tar()), "archive inside an archive"),
    ],
)
def test_an_entry_that_cannot_be_used(make: Callable[[], bytes], says: str) -> None:
    with pytest.raises(UnreadableFile, match=says):
        read_all(make())


def tar() -> bytes:
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as archive:
        info = tarfile.TarInfo("a.json")
        info.size = len(DOCUMENT)
        archive.addfile(info, io.BytesIO(DOCUMENT))
    return sink.getvalue()


def test_a_damaged_entry_leaves_the_others() -> None:
    data = bytearray(packed({"a.json": b"x" * 500, "b.json": DOCUMENT}, zipfile.ZIP_STORED))
    data[60] ^= 0xFF
    damaged, whole = entries("r.zip", bytes(data))
    with pytest.raises(FileError, match="damaged"):
        damaged.read()
    assert whole.read() == DOCUMENT


def test_bombs(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = bytes(2 * 2**20)
    with pytest.raises(FileTooLarge, match="200 times its size"):
        read_all(packed({"a.json": zeros}))
    with pytest.raises(FileTooLarge, match="200 times its size"):
        read_all(gzip.compress(zeros), "a.gz")
    monkeypatch.setenv("DRAFTWORTH_ENTRY_MB", "1")
    with pytest.raises(FileTooLarge, match="over 1 MB"):
        read_all(packed({"a.json": zeros}, zipfile.ZIP_STORED))
    monkeypatch.setenv("DRAFTWORTH_ARCHIVE_MB", "1")
    with pytest.raises(FileTooLarge, match="DRAFTWORTH_ARCHIVE_MB"):
        read_all(packed({"a.json": zeros}))
    monkeypatch.setenv("DRAFTWORTH_ARCHIVE_ENTRIES", "2")
    with pytest.raises(FileTooLarge, match="3 files; at most 2"):
        read_all(packed({f"{n}.json": DOCUMENT for n in range(3)}))


def test_a_size_that_lies_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTWORTH_ENTRY_MB", "1")
    data = bytearray(packed({"a.json": bytes(3 * 2**20)}))
    for place in (22, data.index(b"PK\x01\x02") + 24):  # uncompressed size, in both headers
        data[place : place + 4] = (10).to_bytes(4, "little")
    with pytest.raises(FileError):
        read_all(bytes(data))


def test_deflate_bomb_of_many_layers_is_read_to_its_limit_only() -> None:
    inner = zlib.compress(bytes(50 * 2**20), 9)
    with pytest.raises(FileError):
        read_all(packed({"a.bin": gzip.compress(inner)}))


def test_an_encrypted_entry_says_so() -> None:
    data = bytearray(packed({"a.json": DOCUMENT}))
    for place in (6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1
    with pytest.raises(UnreadableFile, match="without a password"):
        read_all(bytes(data))


METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
WORDS = b" ".join(b"%d" % n for n in range(400))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_is_read(method: int) -> None:
    assert read_all(packed({"a.json": WORDS, "b.json": DOCUMENT}, method)) == {
        "r.zip/a.json": WORDS,
        "r.zip/b.json": DOCUMENT,
    }


@pytest.mark.parametrize("method", METHODS)
@given(st.data())
def test_a_damaged_archive_is_read_or_refused(method: int, data: st.DataObject) -> None:
    """Whatever bytes are flipped or cut: nothing but an error of the tree is raised."""
    whole = bytearray(packed({"a.json": WORDS, "b.json": DOCUMENT}, method))
    for at in data.draw(st.lists(st.integers(0, len(whole) - 1), max_size=4)):
        whole[at] ^= data.draw(st.integers(1, 255))
    damaged = bytes(whole[: data.draw(st.integers(len(whole) - 40, len(whole)))])
    with suppress(FileError):
        for entry in entries("r.zip", damaged):
            with suppress(FileError):
                assert isinstance(entry.read(), bytes)


@pytest.mark.parametrize("method", METHODS)
def test_a_damaged_entry_of_any_method_leaves_the_others(method: int) -> None:
    whole = bytearray(packed({"a.json": WORDS, "b.json": DOCUMENT}, method))
    start = whole.index(b"a.json") + 20
    whole[start : start + 8] = bytes(b ^ 0x5A for b in whole[start : start + 8])
    damaged, other = entries("r.zip", bytes(whole))
    with pytest.raises(UnreadableFile, match="damaged"):
        damaged.read()
    assert other.read() == DOCUMENT


@pytest.mark.parametrize("method", METHODS[1:])
def test_a_bomb_of_any_method_is_stopped(method: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTWORTH_ENTRY_MB", "1")
    (entry,) = entries("r.zip", packed({"a.json": b" " * 2**23}, method))
    with pytest.raises(FileTooLarge, match=r"a\.json"):
        entry.read()


def test_files_of_one_name_are_all_read_under_names_of_their_own() -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in (b"1", b"2", b"3"):
            archive.writestr("k/a.json", text)
        archive.writestr("../k/a.json", b"4")
    assert read_all(sink.getvalue()) == {
        "r.zip/k/a.json": b"1",
        "r.zip/k/a (2 of this name).json": b"2",
        "r.zip/k/a (3 of this name).json": b"3",
        "r.zip/k/a (4 of this name).json": b"4",
    }
