"""Objects as OCFL 1.1, judged by a validator that knows nothing of Penstock."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from ocfl.layout_registry import get_layout

from penstock.errors import Invalid, NotFound
from penstock.ingest.archive.ocfl.inventory import content_path, object_root
from penstock.ingest.archive.ocfl.repository import Depository, StoredVersion
from penstock.objects import Objects
from tests.contract.ocfl_desk import ARK, NOW, Files, IngestService, open_desk


@pytest.fixture
def desk(tmp_path: Path) -> IngestService:
    return open_desk(tmp_path)


ONE: Files = {"producer/data.csv": b"a,b\n1,2\n", "system/mrt-erc.txt": b"erc:\n"}
TWO: Files = {"producer/data.csv": b"a,b\n3,4\n", "system/mrt-erc.txt": b"erc:\n"}


def test_a_new_object(desk: IngestService) -> None:
    stored = desk.deposit("key-1", ONE)
    inventory = (desk.folder / object_root(ARK) / "inventory.json").read_bytes()
    assert stored == StoredVersion(
        ark=ARK,
        version=1,
        location=object_root(ARK),
        digest=hashlib.sha512(inventory).hexdigest(),
        size=13,
        files=2,
        is_new=True,
        changed={name: hashlib.sha512(content).hexdigest() for name, content in ONE.items()},
    )
    assert desk.content() == ONE
    desk.check(ARK)


def test_a_version_records_user_time_and_message(desk: IngestService) -> None:
    desk.deposit("bid0000000001/jid0000000002", ONE)
    version = desk.depository.read(ARK).versions["v1"]
    assert version.created == "2027-01-15T08:00:00.000Z"
    assert version.message == "a deposit [bid0000000001/jid0000000002]"
    assert version.key == "bid0000000001/jid0000000002"
    assert msgspec.to_builtins(version.user) == {
        "name": "ada@example.org",
        "address": "mailto:ada@example.org",
    }


@pytest.mark.parametrize(
    ("who", "address"),
    [
        ("ada", "urn:penstock:user:ada"),
        ("Ada Lovelace, Ünï", "urn:penstock:user:Ada%20Lovelace%2C%20%C3%9Cn%C3%AF"),
        ("Ada <ada@example.org>", "urn:penstock:user:Ada%20%3Cada%40example.org%3E"),
        ("ünï+x@example.org", "mailto:%C3%BCn%C3%AF+x@example.org"),
    ],
)
def test_the_address_of_a_depositor_is_a_uri(desk: IngestService, who: str, address: str) -> None:
    file = desk.new_file("a", b"1")
    desk.depository.store(ARK, "k", [file], update=False, who=who, message="", now=NOW)
    version = desk.depository.read(ARK).versions["v1"]
    assert (version.message, version.key) == ("[k]", "k")
    assert msgspec.to_builtins(version.user) == {"name": who, "address": address}
    desk.check(ARK)


def test_a_second_version_holds_exactly_its_files(desk: IngestService) -> None:
    desk.deposit("key-1", {**ONE, "producer/gone.txt": b"bye"})
    stored = desk.deposit("key-2", TWO)
    assert (stored.version, stored.is_new, stored.files, stored.size) == (2, True, 2, 13)
    assert desk.content() == desk.content(version=2) == TWO
    assert desk.content(version=1) == {**ONE, "producer/gone.txt": b"bye"}
    desk.check(ARK)


def test_an_update_adds_to_the_version_before(desk: IngestService) -> None:
    desk.deposit("key-1", ONE)
    stored = desk.deposit("key-2", {"producer/data.csv": b"new", "b": b"12345"}, update=True)
    assert desk.content() == {**ONE, "producer/data.csv": b"new", "b": b"12345"}
    assert (stored.version, stored.files, stored.size) == (2, 3, 13)
    desk.check(ARK)


def test_an_update_of_nothing_is_a_first_version(desk: IngestService) -> None:
    assert desk.deposit("key-1", ONE, update=True).version == 1
    assert desk.content() == ONE
    desk.check(ARK)


def test_equal_content_is_stored_once(desk: IngestService) -> None:
    desk.deposit("key-1", {"a": b"same", "b/c": b"same", "d": b"other"})
    desk.deposit("key-2", {"moved": b"same", "new": b"new"})
    manifest = desk.depository.read(ARK).manifest
    places = [path.split("/", 3) for [path] in manifest.values()]
    names = sorted((version, name) for version, _, _, name in places)
    assert names == [("v1", "a"), ("v1", "d"), ("v2", "new")]
    assert desk.content() == {"moved": b"same", "new": b"new"}
    desk.check(ARK)


def test_the_same_files_again_are_a_version_again(desk: IngestService) -> None:
    desk.deposit("key-1", ONE)
    stored = desk.deposit("key-2", ONE)
    assert (stored.version, stored.is_new) == (2, True)
    assert not (desk.folder / object_root(ARK) / "v2" / "content").exists()
    desk.check(ARK)


def test_the_same_deposit_again_writes_nothing(desk: IngestService) -> None:
    first = desk.deposit("key-1", ONE)
    second = desk.deposit("key-2", TWO)
    before = _tree(desk.folder)
    assert desk.deposit("key-1", ONE) == msgspec.structs.replace(first, is_new=False)
    assert desk.deposit("key-2", ONE) == msgspec.structs.replace(second, is_new=False)
    assert _tree(desk.folder) == before


def test_a_message_cannot_pretend_to_be_another_deposit(desk: IngestService) -> None:
    file = desk.new_file("a", b"1")
    desk.depository.store(ARK, "k1", [file], update=False, who="x", message="for [k2]", now=NOW)
    assert desk.deposit("k2", ONE).version == 2


def _tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


ODD_NAMES = [
    "producer/with space.txt", "producer/ünï/日本語.txt", "producer/e\u0301", "producer/é",
    "a/b/c/d/e", "100%.txt", "%41", "A", "track#1", "q?x=1&y#z", "*[1]{2}", "semi;colon:|<>\"`^",
    ".hidden", "...", "~x", "0=ocfl_object_1.1", "inventory.json", "v1/content/x", "x" * 255,
    "y/" * 500 + "z", "a\u2028line", "\U0001f4a7" * 60,
]  # fmt: skip


def test_odd_names_come_back_as_they_were(desk: IngestService) -> None:
    files = {name: f"content {n}".encode() for n, name in enumerate(ODD_NAMES)}
    files["empty"] = b""
    desk.deposit("key-1", files)
    assert desk.content() == files
    desk.check(ARK)


def test_no_two_names_share_a_place() -> None:
    paths = [content_path(1, "f", name).removeprefix("v1/content/f/") for name in ODD_NAMES]
    names = [*ODD_NAMES, *paths]
    assert len({content_path(1, "f", name) for name in names}) == len(set(names))


def test_a_large_file_is_stored(desk: IngestService) -> None:
    content = bytes(range(256)) * 20_000
    assert desk.deposit("key-1", {"large": content}).size == len(content)
    assert desk.content() == {"large": content}
    desk.check(ARK)


@pytest.mark.parametrize("ark", [ARK, "ark:/99999/fk4" + "é" * 50, "ark:/99999/" + "x" * 150])
def test_the_layout_is_that_of_the_extension(desk: IngestService, ark: str) -> None:
    layout = get_layout("0003-hash-and-id-n-tuple-storage-layout")
    assert object_root(ark) == layout.identifier_to_path(ark)
    desk.deposit("key-1", ONE, ark)
    desk.check(ark)


def test_preparing_again_and_at_once_is_harmless(desk: IngestService) -> None:
    before = _tree(desk.folder)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: Depository(desk.objects).prepare(), range(16)))
    assert _tree(desk.folder) == before
    desk.check()


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("0=ocfl_1.0", b"ocfl_1.0\n"),
        ("ocfl_layout.json", b'{"extension": "0002-flat-direct-storage-layout"}'),
        ("ocfl_layout.json", b"not JSON"),
        (
            "extensions/0003-hash-and-id-n-tuple-storage-layout/config.json",
            b'{"extensionName":"0003-hash-and-id-n-tuple-storage-layout","tupleSize":2}',
        ),
    ],
)
def test_a_root_of_another_kind_is_refused(key: str, content: bytes) -> None:
    objects = Objects.open("memory://")
    objects.put(key, content)
    with pytest.raises(Invalid, match="OCFL root of another version or layout"):
        Depository(objects).prepare()


def test_a_store_without_folders(tmp_path: Path) -> None:
    desk = open_desk(tmp_path, Objects.open("memory://"))
    desk.deposit("key-1", ONE)
    desk.deposit("key-2", {"b": b""}, update=True)
    assert desk.content() == {**ONE, "b": b""}
    assert desk.content(version=1) == ONE
    assert desk.depository.verify(ARK) == []
    desk.check(ARK)


def test_many_objects_at_once(desk: IngestService) -> None:
    arks = [f"ark:/99999/fk4{n}" for n in range(24)]

    def deposit(ark: str) -> list[int]:
        return [
            desk.deposit(f"{ark}/1", {**ONE, "id": ark.encode()}, ark).version,
            desk.deposit(f"{ark}/2", {"id": ark.encode()}, ark, update=True).version,
        ]

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(deposit, arks)) == [[1, 2]] * 24
    assert all(desk.content(ark) == {**ONE, "id": ark.encode()} for ark in arks)
    desk.check(*arks)


def test_bytes_that_are_not_those_of_the_digest_are_never_stored(desk: IngestService) -> None:
    desk.deposit("key-1", ONE)
    good, bad = desk.new_file("a", b"what came"), desk.new_file("b", b"what was meant")
    bad.path.write_bytes(b"what was meanT")
    known = desk.new_file("c", ONE["producer/data.csv"])
    known = msgspec.structs.replace(known, path=bad.path)
    for files in ([good, bad], [good, known]):
        with pytest.raises(Invalid, match="has changed since its digest was taken"):
            desk.depository.store(ARK, "key-2", files, update=False, who="x", message="", now=NOW)
        assert desk.content() == ONE
    desk.deposit("key-3", TWO)
    desk.check(ARK)


def test_a_wrong_size_is_refused(desk: IngestService) -> None:
    file = msgspec.structs.replace(desk.new_file("a", b"123"), size=4)
    with pytest.raises(Invalid, match="expected 4 bytes"):
        desk.depository.store(ARK, "k", [file], update=False, who="x", message="", now=NOW)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "without files"),
        ({"../a": b""}, "'../a' cannot be stored: the name leaves its folder"),
        ({"/a": b""}, "is absolute"),
        ({"a": b"", "a/b": b""}, "'a' cannot be a file and the folder of 'a/b'"),
        ({"a/b/c": b"", "a": b""}, "'a' cannot be a file and the folder of 'a/b/c'"),
    ],
)
def test_a_deposit_that_cannot_be_is_refused(
    desk: IngestService, files: Files, message: str
) -> None:
    with pytest.raises(Invalid, match=message):
        desk.deposit("key-1", files)
    desk.check()


def test_two_files_of_one_name_are_refused(desk: IngestService) -> None:
    files = [desk.new_file("a", b"1"), desk.new_file("a", b"2")]
    with pytest.raises(Invalid, match="two files of the deposit have the name 'a'"):
        desk.depository.store(ARK, "k", files, update=False, who="x", message="", now=NOW)


def test_an_update_cannot_make_a_file_a_folder(desk: IngestService) -> None:
    desk.deposit("key-1", {"a": b"1"})
    with pytest.raises(Invalid, match="'a' cannot be a file and the folder of 'a/b'"):
        desk.deposit("key-2", {"a/b": b"2"}, update=True)
    assert desk.deposit("key-2", {"a/b": b"2"}).version == 2
    desk.check(ARK)


@pytest.mark.parametrize("key", ["", "a b", "a]", "[a", "x" * 201, "é", "a\n"])
def test_a_key_that_could_not_be_found_again_is_refused(desk: IngestService, key: str) -> None:
    with pytest.raises(Invalid, match="cannot identify a deposit"):
        desk.deposit(key, ONE)


def test_what_is_not_there(desk: IngestService) -> None:
    with pytest.raises(NotFound, match="there is no object ark:/99999/fk4abc"):
        desk.depository.read(ARK)
    desk.deposit("key-1", ONE)
    with pytest.raises(NotFound, match="no version 2; its newest is 1"):
        desk.depository.files(ARK, 2)
    with pytest.raises(NotFound, match="there is no file 'nothing'"):
        desk.depository.open_file(ARK, "nothing")


@pytest.mark.parametrize(
    ("path", "content", "problem"),
    [
        ("v1/content/*/producer/data.csv", b"a,b\n1,3\n", "has sha512"),
        ("v1/content/*/producer/data.csv", None, "is missing"),
        ("v1/content/stranger", b"", "belongs to no version"),
        ("v1/inventory.json", b"{}", "is not an inventory"),
        ("v1/inventory.json", None, "is missing"),
        ("v1/inventory.json.sha512", b"", "is not the digest"),
        ("v2/inventory.json", b"{}", "differs from"),
        ("v2/inventory.json.sha512", None, "is missing"),
        ("inventory.json", None, "is missing"),
        ("inventory.json", b"{}", "is not an inventory"),
        ("inventory.json.sha512", b"00 inventory.json", "is not the digest"),
        ("0=ocfl_object_1.1", b"x", "does not have the content that its name requires"),
        ("0=ocfl_object_1.1", None, "is missing"),
    ],
)
def test_damage_is_found(
    desk: IngestService, path: str, content: bytes | None, problem: str
) -> None:
    desk.deposit("key-1", ONE)
    desk.deposit("key-2", TWO)
    inside = desk.folder / object_root(ARK)
    [found] = inside.glob(path) if "*" in path else [inside / path]
    key = str(found.relative_to(desk.folder))
    if content is None:
        desk.objects.delete(key)
    else:
        desk.objects.put(key, content)
    problems = desk.depository.verify(ARK)
    assert any(key in said and problem in said for said in problems)


def test_nothing_is_built_on_a_damaged_inventory(desk: IngestService) -> None:
    desk.deposit("key-1", ONE)
    key = f"{object_root(ARK)}/inventory.json"
    desk.objects.put(key, desk.objects.get(key).replace(b"a deposit", b"A deposit"))
    with pytest.raises(Invalid, match="is damaged"):
        desk.deposit("key-2", TWO)


def test_an_inventory_of_another_tool_is_refused(desk: IngestService) -> None:
    desk.deposit("key-1", ONE)
    key = f"{object_root(ARK)}/inventory.json"
    desk.objects.put(key, desk.objects.get(key).replace(b'"head"', b'"fixity": {}, "head"'))
    with pytest.raises(Invalid, match="not an inventory that Penstock can continue"):
        desk.deposit("key-2", TWO)
