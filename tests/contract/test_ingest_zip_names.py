"""Names in zips, which many programs write otherwise than they should."""

import struct
import zipfile
import zlib
from pathlib import Path

import bagit
import pytest

from penstock.errors import Invalid
from penstock.ingest.intake.archives import ArchiveLimits, unpack, verify_bag


class PlainName(zipfile.ZipInfo):
    """A member whose name is written as these bytes, and not said to be UTF-8."""

    def __init__(self, name: bytes, unicode_path: bytes = b"", named: bytes | None = None) -> None:
        super().__init__(name.decode("cp437"))
        self._name = name
        if unicode_path:
            field = struct.pack("<BL", 1, zlib.crc32(name if named is None else named))
            field += unicode_path
            self.extra = struct.pack("<HH2s", 0x5455, 2, b"xx")  # another, which stands before it
            self.extra += struct.pack("<HH", 0x7075, len(field)) + field

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802
        return self._name, self.flag_bits


@pytest.mark.parametrize(
    ("member", "name"),
    [
        (PlainName("Grüße/日本 語.txt".encode()), "Grüße/日本 語.txt"),
        (PlainName("Grüße.txt".encode("cp437")), "Grüße.txt"),
        (PlainName(b"Gr__e.txt", "Grüße.txt".encode()), "Grüße.txt"),
        (PlainName("Grüße.txt".encode("cp437"), "日本.txt".encode()), "日本.txt"),
        (PlainName(b"renamed.txt", b"before.txt", named=b"before.txt"), "renamed.txt"),
        (PlainName("Grüße.txt".encode("cp437"), b"\xff.txt"), "Grüße.txt"),
    ],
)
def test_a_name_in_a_zip_is_the_one_that_was_meant(
    tmp_path: Path, member: PlainName, name: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(member, b"content")
    found = unpack(tmp_path / "a.zip", tmp_path / "out", ArchiveLimits())
    assert [path.as_posix() for path in found] == [name]
    assert (tmp_path / "out" / name).read_bytes() == b"content"


def test_a_unicode_path_that_leaves_its_folder_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(PlainName(b"plain.txt", b"../up.txt"), b"content")
    with pytest.raises(Invalid, match="leaves its folder"):
        unpack(tmp_path / "a.zip", tmp_path / "out", ArchiveLimits())


def test_a_bag_that_linux_has_zipped_is_complete(tmp_path: Path) -> None:
    bag = tmp_path / "one"
    bag.mkdir()
    (bag / "Grüße.txt").write_bytes(b"hello")
    bagit.make_bag(str(bag), checksums=["sha512"])
    with zipfile.ZipFile(tmp_path / "bag.zip", "w") as archive:
        for path in filter(Path.is_file, bag.rglob("*")):
            name = path.relative_to(tmp_path).as_posix()
            archive.writestr(PlainName(name.encode()), path.read_bytes())
    unpack(tmp_path / "bag.zip", tmp_path / "out", ArchiveLimits())
    assert verify_bag(tmp_path / "out")
