"""A bucket whose answers do not come whole: what was to be stored is not said to be missing."""

import pytest

from penstock.errors import Away
from penstock.objects.store import Objects
from tests.doors.lossy import lossy
from tests.object_server import environment


def test_an_upload_whose_last_answer_breaks_off_has_met_a_store_that_is_away(
    bucket_url: str, object_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has ended the upload, and knows nothing more of it when it is given up."""
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
