"""Database URLs that are accepted, and the errors for the others."""

import os
from pathlib import Path

import pytest

from penstock.db import open_database
from penstock.errors import Invalid, Unavailable


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://host/name", "'mysql' is not the scheme of a database URL"),
        ("/var/lib/penstock.db", "is not the scheme of a database URL"),
        ("sqlite:///:memory:", "not durable; name a file"),
        ("sqlite://", "names no file"),
        ("sqlite://name.db", "names no file"),
        ("sqlite:///a.db?mode=ro", "options after"),
        ("postgresql://u@h/x?y", "cannot be read"),
    ],
)
def test_a_url_without_a_durable_database_is_refused(url: str, message: str) -> None:
    with pytest.raises(Invalid, match=message):
        open_database(url)


def test_a_sqlite_path_is_relative_after_three_slashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("sqlite:///new/folder/a.db", f"sqlite:///{tmp_path}/b.db"):
        open_database(url).close()
    assert (tmp_path / "new/folder/a.db").exists()
    assert (tmp_path / "b.db").exists()


def test_a_database_that_cannot_be_opened_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for url in (
        f"sqlite:///{tmp_path}",
        f"sqlite:///{tmp_path}/file/a.db",
        f"postgresql://nobody@/nothing?host={tmp_path}",
    ):
        with pytest.raises(Unavailable):
            open_database(url)
    assert os.listdir(tmp_path) == ["file"]
