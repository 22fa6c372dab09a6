"""A bucket with incomplete answers: an upload does not become a missing object."""

import pytest

from penstock.errors import Away
from penstock.objects.store import Objects
from tests.doors.lossy import lossy
from tests.object_server import environment


def test_upload_with_a_lost_last_answer_is_away(
    bucket_url: str, object_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has completed the upload, and does not know it when it is aborted."""
    with lossy(f"http://{object_server}") as line:
        for name, value in environment(line.url.removeprefix("http://")).items():
            monkeypatch.setenv(name, value)
        objects = Objects.open(bucket_url)
        line.lose("/key", "kept", "kept", "half")
        with pytest.raises(Away, match="cannot write key"):
            objects.put("key", iter([b"some", b"thing"]))
        assert [seen.split()[0] for seen in line.seen] == ["POST", "PUT", "POST", "DELETE"]
        objects.put("key", iter([b"some", b"thing"]))
        assert objects.get("key") == b"something"
