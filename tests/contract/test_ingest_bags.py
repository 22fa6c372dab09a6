"""A BagIt bag that comes in is verified, file by file."""

import shutil
import tarfile
from pathlib import Path

import bagit
import pytest

from penstock.errors import Invalid
from penstock.ingest.intake.archives import ArchiveLimits, unpack, verify_bag


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    folder = tmp_path / "bags" / "one"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"alpha")
    bagit.make_bag(str(folder), checksums=["sha512"])
    return folder


def test_a_bag_is_verified_at_the_top_or_in_a_folder(bag: Path) -> None:
    assert verify_bag(bag)
    assert verify_bag(bag.parent)


def test_a_bag_is_verified_whatever_lies_beside_it(bag: Path) -> None:
    (bag.parent / "beside").write_bytes(b"")
    (bag.parent / "__MACOSX").mkdir()
    assert verify_bag(bag.parent)
    (bag / "data" / "a.txt").write_bytes(b"alphA")
    with pytest.raises(Invalid, match="the bag is not valid"):
        verify_bag(bag.parent)


def test_every_bag_is_verified(bag: Path) -> None:
    shutil.copytree(bag, bag.parent / "two")
    assert verify_bag(bag.parent)
    (bag.parent / "two" / "data" / "a.txt").unlink()
    with pytest.raises(Invalid, match="the bag is not valid"):
        verify_bag(bag.parent)


def test_a_folder_that_is_no_bag(tmp_path: Path) -> None:
    assert not verify_bag(tmp_path)
    (tmp_path / "folder").mkdir()
    assert not verify_bag(tmp_path)


def test_a_bag_that_is_wrong(bag: Path) -> None:
    (bag / "data" / "a.txt").write_bytes(b"alphA")
    with pytest.raises(Invalid, match=r"(?s)the bag is not valid: .*data/a\.txt"):
        verify_bag(bag)


def test_a_bag_that_is_incomplete(bag: Path) -> None:
    (bag / "data" / "more.txt").write_bytes(b"more")
    with pytest.raises(Invalid, match="the bag is not valid"):
        verify_bag(bag)
    (bag / "data" / "more.txt").unlink()
    (bag / "data" / "a.txt").unlink()
    with pytest.raises(Invalid, match="the bag is not valid"):
        verify_bag(bag)


def test_many_faults_of_a_bag_are_cut_with_their_number(bag: Path) -> None:
    lines = (f"{'0' * 128}  data/{number:05}.tif\n" for number in range(20_000))
    with (bag / "manifest-sha512.txt").open("a") as manifest:
        manifest.writelines(lines)
    for name in ("bag-info.txt", "tagmanifest-sha512.txt"):
        (bag / name).unlink()
    with pytest.raises(Invalid) as refused:
        verify_bag(bag)
    told = str(refused.value)
    assert told.startswith("the bag is not valid: Bag is incomplete: data/00000.tif exists in")
    assert "; and 19,980 faults more; correct it where it is and resume the job" in told
    assert told.count(".tif") == 20


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"BagIt-Version: 0.97\nTag-File-Character-Encoding: nonsense\n",
        b"BagIt-Version: 9.9\nTag-File-Character-Encoding: UTF-8\n",
    ],
)
def test_a_bag_with_a_bad_declaration(bag: Path, text: bytes) -> None:
    (bag / "bagit.txt").write_bytes(text)
    with pytest.raises(Invalid, match="the bag is not valid"):
        verify_bag(bag)


def test_a_bag_comes_in_as_a_container(bag: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bag.tgz", "w:gz") as archive:
        archive.add(bag, arcname="one")
    unpack(tmp_path / "bag.tgz", tmp_path / "out", ArchiveLimits())
    assert verify_bag(tmp_path / "out")
