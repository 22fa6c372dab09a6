"""Depositing into an OCFL root, and asking a validator that knows nothing of Penstock about it."""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from ocfl import StorageRoot
from ocfl.validator import Validator

from penstock.ingest.archive.ocfl.inventory import NewFile, object_root
from penstock.ingest.archive.ocfl.repository import Depository, StoredVersion
from penstock.objects import Objects

ARK = "ark:/99999/fk4abc"
NOW = 1_800_000_000_000_000
Files = Mapping[str, bytes]


class IngestService:
    """Hands in deposits, and asks the validator about what came of them."""

    def __init__(self, objects: Objects, folder: Path, work: Path) -> None:
        self.objects = objects
        self.folder = folder
        self.depository = Depository(objects)
        self._work = work

    def deposit(
        self, key: str, files: Files, ark: str = ARK, *, update: bool = False
    ) -> StoredVersion:
        new = [self.new_file(name, content) for name, content in files.items()]
        return self.depository.store(
            ark, key, new, update=update, who="ada@example.org", message="a deposit", now=NOW
        )

    def new_file(self, name: str, content: bytes) -> NewFile:
        digest = hashlib.sha512(content).hexdigest()
        path = self._work / uuid4().hex
        path.write_bytes(content)
        return NewFile(name, path, digest, len(content))

    def content(self, ark: str = ARK, version: int | None = None) -> dict[str, bytes]:
        found = {}
        for file in self.depository.files(ark, version):
            with self.depository.open_file(ark, file.name, version) as chunks:
                found[file.name] = b"".join(chunks)
            assert file.size == len(found[file.name])
            assert file.sha512 == hashlib.sha512(found[file.name]).hexdigest()
        return found

    def check(self, *arks: str) -> None:
        """The whole root and every object are valid, without a warning, and Penstock agrees."""
        if self.objects.path("x") is None:
            self._copy()
        root = StorageRoot(root=str(self.folder))
        assert root.validate(log_warnings=True), root.log.status_str()
        assert root.errors == [], (root.errors, root.log.status_str())
        assert root.good_objects == root.num_objects == len(arks)
        for ark in arks:
            validator = Validator(log_warnings=True)
            assert validator.validate_object(str(self.folder / object_root(ark)))
            assert str(validator) == ""
            assert self.depository.verify(ark) == []

    def _copy(self) -> None:
        """Bring what is in a store without folders to where the validator can read it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        for entry in self.objects.list():
            path = self.folder / entry.key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.objects.get(entry.key))


def open_desk(tmp_path: Path, objects: Objects | None = None) -> IngestService:
    folder, work = tmp_path / "root", tmp_path / "work"
    work.mkdir(exist_ok=True)
    desk = IngestService(objects or Objects.open(str(folder)), folder, work)
    desk.depository.prepare()
    return desk
