"""Secrets in the database and the modes of its files: only their owner can read them."""

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from penstock.access.secrets import Secrets
from penstock.config import Settings
from penstock.db import open_database
from penstock.errors import Conflict, Invalid
from penstock.plane import Plane
from penstock.subscribers.commands import load_subscribers
from tests.doors.serving import API, running

SECRET = "hush-hush-1234"
KEY = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
OTHER_KEY = "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of our own, for the key file beside PostgreSQL."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data" / "penstock"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def stored(url: str) -> str:
    """Each row of the database that may hold a secret, as text."""
    with closing(open_database(url)) as database, database.read() as tx:
        return f"{load_subscribers(tx)} {tx.fetch('all_collections')}"


def test_the_database_and_its_folders_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "deep"
    settings = Settings(
        database=f"sqlite:///{folder}/penstock.db",
        objects=f"file://{tmp_path}/objects",
        ingest_folder=str(tmp_path / "ingest"),
    )
    with umask(0), Plane.open(settings) as plane:
        plane.context.storage.working_folder()
        assert plane.objects
        for ending in ("", "-wal", "-shm"):
            assert mode(folder / f"penstock.db{ending}") == 0o600, ending
        for made in (folder, folder.parent, tmp_path / "objects", tmp_path / "ingest"):
            assert mode(made) == 0o700, made


def test_the_files_of_an_older_database_become_private(tmp_path: Path) -> None:
    file = tmp_path / "penstock.db"
    settings = Settings(database=f"sqlite:///{file}")
    Plane.open(settings).close()
    file.chmod(0o644)

    Plane.open(settings).close()

    assert mode(file) == 0o600


def test_the_file_of_another_program_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database " * 100)
    file.chmod(0o644)

    with pytest.raises(Invalid):
        open_database(f"sqlite:///{file}")

    assert mode(file) == 0o644


def test_secrets_of_webhooks_and_callbacks_are_encrypted(database_url: str) -> None:
    with running(database_url) as server:
        body = {"kind": "webhook", "url": "https://example.org", "secret": SECRET}
        assert server.client.put(f"{API}/subscribers/pager", json=body).is_success
        films = {"dataset": "films", "callback": "https://example.org", "callbackSecret": SECRET}
        answer = server.client.put(f"{API}/ingest/collections/films", json=films)
        assert answer.is_success, answer.text

        rows = stored(database_url)

        assert SECRET not in rows
        assert rows.count("fernet:") == 2


def test_the_key_file_is_private_and_made_once(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "penstock.db.key"
    with umask(0):
        sealed = Secrets(None, file).seal(SECRET)

    assert (mode(file), mode(file.parent)) == (0o600, 0o700)
    assert Secrets(None, file).reveal(sealed) == SECRET
    assert SECRET not in sealed


def test_older_keys_decrypt_what_they_encrypted(tmp_path: Path) -> None:
    sealed = Secrets(KEY, tmp_path / "none").seal(SECRET)

    assert Secrets(f"{OTHER_KEY}, {KEY}", tmp_path / "none").reveal(sealed) == SECRET
    assert not list(tmp_path.iterdir())


def test_a_secret_of_an_absent_key_is_named(tmp_path: Path) -> None:
    sealed = Secrets(KEY, tmp_path / "none").seal(SECRET)

    with pytest.raises(Conflict, match="secrets_key"):
        Secrets(OTHER_KEY, tmp_path / "none").reveal(sealed)
    elsewhere = Secrets(None, tmp_path / "none")
    with pytest.raises(Conflict, match="none"):
        elsewhere.check(sealed)
    with pytest.raises(Conflict, match="which is not here"):
        elsewhere.seal("another")


@pytest.mark.parametrize("key", ["short", "QUFB", "not base64 at all !"])
def test_a_key_that_is_none_is_refused(tmp_path: Path, key: str) -> None:
    with pytest.raises(Invalid, match="openssl rand -base64 32"):
        Secrets(key, tmp_path / "none")
