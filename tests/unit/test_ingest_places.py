"""Which URLs and addresses may be fetched, as far as it shows without the network."""

import pytest

from penstock.errors import Invalid
from penstock.ingest.intake.places import Places, check_url, is_public, redact_url

NOWHERE = Places()
PUBLIC = "93.184.215.14"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "198.18.0.1",
        "192.88.99.1",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:8.8.8.8",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2002:7f00:1::1",
        "2001::1",
        "2001:db8::1",
        "3fff::1",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "fd00::1",
        "ff0e::1",
        "not an address",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:4700:4700::1111", "2a00:1450::1"])
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    ("prefix", "url", "covered"),
    [
        ("http://127.0.0.1:80", "http://127.0.0.1/a", True),
        ("http://127.0.0.1:80", "http://127.0.0.1:8000/a", False),
        ("http://127.0.0.1", "http://127.0.0.1.evil.org/a", False),
        ("http://127.0.0.1", "https://127.0.0.1/a", False),
        ("http://intra.example/in/", "http://INTRA.example/in/a/b", True),
        ("http://intra.example/in", "http://intra.example/in", True),
        ("http://intra.example/in", "http://intra.example/in?x=/../", True),
        ("http://intra.example/in", "http://intra.example/inner/a", False),
        ("http://intra.example/in", "http://intra.example/%69n/a", True),
        ("http://intra.example/in", "http://intra.example/in/../admin", False),
        ("http://intra.example/in", "http://intra.example/in/%2e%2e/admin", False),
        ("http://intra.example/in/", "http://intra.example/in/..;/admin", False),
        ("http://intra.example/in/", "http://intra.example/in/..;x=1/admin", False),
        ("http://intra.example/in/", "http://intra.example/in/.%2e%3b/admin", False),
        ("http://intra.example/in/", "http://intra.example/in/%252e%252e/admin", False),
        ("http://intra.example/in/", "http://intra.example/in/%252e%252e%252fadmin", False),
        ("http://intra.example/in/", "http://intra.example/in/%25252e./admin", False),
        ("http://intra.example/in/", "http://intra.example/in/..x;y/a..b/100%25/;", True),
        ("http://intra.example/in", "http://intra.example/in/%2E%2E%2Fadmin", False),
        ("http://intra.example/in", "http://intra.example/in/..%5cadmin", False),
        ("http://intra.example/in", "http://intra.example//in/a", False),
        ("http://[::1]:81/", "http://[::1]:81/a", True),
        ("s3://bucket/in/", "s3://bucket/in/a", True),
        ("s3://bucket", "s3://bucket/any/key", True),
        ("s3://bucket/in", "s3://bucket/inner", False),
        ("s3://bucket/in", "s3://bucket/in/../out", False),
        ("s3://bucket", "s3://bucket2/a", False),
        ("s3://bucket", "http://bucket/a", False),
        ("file:///data/in", "file:///data/in/a", True),
        ("file:///data/in", "file://localhost/data/in/a%20b", True),
        ("file:///data/in", "file:///data/inner/a", False),
        ("file:///data/in", "file:///data/in/../out", False),
        ("file:///data/in", "file:///data/in/%2e%2e/out", False),
    ],
)
def test_a_place_covers_whole_segments(prefix: str, url: str, covered: bool) -> None:
    assert Places((prefix,)).covers(url) is covered


@pytest.mark.parametrize(
    "prefix",
    ["", "intra.example", "ftp://host/", "http://user@host/", "s3://", "file:in", "http://h/?a"],
)
def test_a_place_that_is_no_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(Invalid):
        Places((prefix,))


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.org/a", "use http, https, s3, file"),
        ("gopher://example.org/a", "use http, https, s3, file"),
        ("payload:abc", "use http, https, s3, file"),
        ("no scheme at all", "use http, https, s3, file"),
        ("http://user:secret@example.org/a", "user name or password"),
        ("http:///a", "names no host"),
        ("http://example.org:0/", "a port that cannot be"),
        ("http://example.org:99999/", "a port that cannot be"),
        ("http://exa\nmple.org/", "is not a URL"),
        ("http://10.0.0.1/a", "10.0.0.1 is not a public address"),
        ("http://[::1]/a", "::1 is not a public address"),
        ("file:///etc/passwd", "add it to the collection's places"),
        ("file://other/etc/passwd", "not a file of this machine"),
        ("file:etc/passwd", "not a file of this machine"),
        ("file:///etc/pass%00wd", "not a file of this machine"),
        ("s3://bucket/key", "add it to the collection's places"),
        ("s3://bucket/key?versionId=1", "%3F"),
    ],
)
def test_urls_that_are_refused_before_any_connection(url: str, reason: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_url(url, NOWHERE)
    assert reason in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_public_web_is_allowed() -> None:
    for url in ("http://example.org/a", "https://example.org:8443/a?b#c", f"http://{PUBLIC}/"):
        check_url(url, NOWHERE)


def test_secrets_in_urls_are_not_shown() -> None:
    assert redact_url("https://me:secret@h.org/a?token=1#x") == "https://h.org/a"
    assert redact_url("https://h.org/a@b?x=y@z") == "https://h.org/a@b"
    assert "\n" not in redact_url("http://h/\n")
