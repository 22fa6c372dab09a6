"""How long what a depositor says may be: everything has to fit into every queue and every index."""

import pytest

from penstock.errors import Invalid
from penstock.ingest.archive.arks import LOCAL_ID_BYTES_MAX, read_local_ids
from penstock.ingest.collections import OWNER_BYTES_MAX, check_collection
from penstock.ingest.intake.checkm import HEADER, PROFILES, parse
from penstock.ingest.models import TEXT_CHARS_MAX, URL_CHARS_MAX
from penstock.schema.ingest import Collection

HEAD = f"{HEADER}\n#%profile | {PROFILES}mrt-single-file-batch-manifest\n"
TITLE = "x" * TEXT_CHARS_MAX
LOCAL_ID = "x" * LOCAL_ID_BYTES_MAX


def manifest(url: str = "http://h/a", *, local_id: str = "", title: str = "") -> bytes:
    return f"{HEAD}{url} | | | | | a | | {local_id} | | {title} |\n#%eof\n".encode()


def test_the_longest_that_a_manifest_may_say_is_taken() -> None:
    url = f"http://h/{'u' * (URL_CHARS_MAX - 9)}"
    [row] = parse(manifest(url, local_id=f"{LOCAL_ID};{LOCAL_ID}", title=TITLE)).rows
    assert (row.url, row.title, row.local_id) == (url, TITLE, f"{LOCAL_ID};{LOCAL_ID}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (manifest(title=TITLE + "x"), "mrt:title has 10,001 characters; at most 10,000 are taken"),
        (
            manifest(f"http://h/{'u' * URL_CHARS_MAX}"),
            "nfo:fileUrl has 8,009 characters; at most 8,000 are taken",
        ),
        (
            manifest(local_id=f"n1;{LOCAL_ID}x"),
            f"the local id '{'x' * 64}'… has 1,001 bytes; at most 1,000 are taken",
        ),
    ],
)
def test_a_too_long_value_is_refused_by_its_line(content: bytes, message: str) -> None:
    with pytest.raises(Invalid) as refused:
        parse(content)
    assert str(refused.value) == f"line 3: {message}"


def test_local_ids_are_divided_by_semicolons() -> None:
    assert read_local_ids(" a; b b ;;c") == ("a", "b b", "c")
    assert read_local_ids(None) == ()


def test_an_owner_has_to_fit_beside_its_local_ids() -> None:
    check_collection(Collection(name="maps", dataset="maps", owner="o" * OWNER_BYTES_MAX))
    with pytest.raises(Invalid, match="the owner of collection maps has more than 500 bytes"):
        check_collection(Collection(name="maps", dataset="maps", owner="ö" * OWNER_BYTES_MAX))
