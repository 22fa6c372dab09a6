"""Nothing slips through the door: names, addresses, redirects, certificates, links."""

import os
import shlex
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.errors import Invalid, NotFound
from penstock.ingest.intake.outbound import open_client, open_file
from penstock.ingest.intake.places import Places, check_url
from tests.patience import HANG_SECONDS
from tests.web import Request, Web, content, drip, head, redirect

NOWHERE = Places()
PUBLIC = "93.184.215.14"


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        yield server


def addresses(*found: str) -> "Resolver":
    return Resolver([list(found)])


def get(url: str, places: Places = NOWHERE, **options: Any) -> httpx.Response:
    with open_client(places, **options) as client:
        return client.get(url)


class Resolver:
    """Answers in turn, and keeps the last answer."""

    def __init__(self, turns: list[list[str]]) -> None:
        self.turns = turns
        self.asked: list[tuple[str, int]] = []

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append((host, port))
        return self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]


@pytest.mark.parametrize(
    "found",
    [["127.0.0.1"], [PUBLIC, "127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]],
)
def test_a_name_that_leads_inside_is_refused(web: Web, found: list[str]) -> None:
    web.on("/a", content(b"inside"))
    with pytest.raises(Invalid, match=r"the host innocent\.example is not at a public address"):
        get(f"http://innocent.example:{web.port}/a", resolve=Resolver([found]))
    assert web.requests == []


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.0.0.1", "localhost"])
def test_other_spellings_of_this_machine_are_refused(web: Web, host: str) -> None:
    web.on("/a", content(b"inside"))
    with pytest.raises(Invalid, match="not at a public address"):
        get(f"http://{host}:{web.port}/a")
    assert web.requests == []


def test_a_name_that_changes_its_address_is_connected_where_it_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected: list[str] = []

    def connect(address: tuple[str, int], *_: object, **__: object) -> socket.socket:
        connected.append(address[0])
        raise OSError("nobody is there")

    monkeypatch.setattr(socket, "create_connection", connect)
    resolve = Resolver([[PUBLIC], ["127.0.0.1"]])
    with open_client(NOWHERE, resolve=resolve) as client:
        with pytest.raises(httpx.ConnectError):
            client.get("http://rebinding.example/a")
        with pytest.raises(Invalid, match=r"rebinding\.example is not at a public address"):
            client.get("http://rebinding.example/a")
    assert connected == [PUBLIC]
    assert resolve.asked == [("rebinding.example", 80)] * 2


def test_a_connection_to_a_listed_place_serves_no_other_path(web: Web) -> None:
    web.on("/in/a", content(b"listed"))
    web.on("/admin", content(b"secret"))
    with open_client(Places((f"{web.url}/in",))) as client:
        assert client.get(f"{web.url}/in/a").content == b"listed"
        with pytest.raises(Invalid, match="/admin may not be fetched"):
            client.get(f"{web.url}/admin")
    assert [request.path for request in web.requests] == ["/in/a"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254 is not a public address"),
        ("http://localhost:{port}/secret", "localhost is not at a public address"),
        ("//0.0.0.0:{port}/secret", "0.0.0.0 is not a public address"),
        ("/secret", "127.0.0.1 is not a public address"),
        ("file:///etc/passwd", "not a file of this machine"),
        ("s3://bucket/key", "s3 URLs are fetched from listed places only"),
        ("ftp://example.org/a", "use http, https, s3, file"),
        ("http://user:pw@example.org/", "user name or password"),
    ],
)
def test_a_redirect_meets_the_same_check(web: Web, target: str, reason: str) -> None:
    web.on("/secret", content(b"secret"))
    url = web.on("/in/a", redirect(target.format(port=web.port)))
    with pytest.raises(Invalid) as refused:
        get(url, Places((f"{web.url}/in",)))
    assert reason in str(refused.value)
    assert web.requests_to("/secret") == []


def test_a_redirect_to_a_file_is_refused_even_in_a_listed_place(web: Web) -> None:
    url = web.on("/a", redirect("file://localhost/etc/passwd"))
    with pytest.raises(Invalid, match="a redirect goes to http or https only"):
        get(url, Places((web.url, "file:///etc")))


def test_redirects_are_followed_five_times(web: Web) -> None:
    for number in range(6):
        web.on(f"/{number}", redirect(f"/{number + 1}"))
    web.on("/6", content(b"there"))
    with open_client(Places((web.url,))) as client:
        assert client.get(f"{web.url}/1").content == b"there"
        with pytest.raises(httpx.TooManyRedirects):
            client.get(f"{web.url}/0")


def test_the_body_of_a_redirect_is_not_read(web: Web) -> None:
    hung_up = threading.Event()

    def endless(request: Request, connection: socket.socket) -> None:
        connection.sendall(head(302, {"Location": "/there", "Content-Encoding": "gzip"}))
        try:
            while True:
                connection.sendall(bytes(65536))
        except OSError:
            hung_up.set()

    web.on("/there", content(b"there"))
    assert get(web.on("/a", endless), Places((web.url,))).content == b"there"
    assert hung_up.wait(HANG_SECONDS)


def test_a_redirect_to_an_invalid_url_is_refused(web: Web) -> None:
    url = web.on("/a", redirect("http://host:port/"))
    with pytest.raises(Invalid, match="redirects to what is no URL"):
        get(url, Places((web.url,)))


def test_cookies_are_not_kept(web: Web) -> None:
    url = web.on("/a", content(b"a", headers={"Set-Cookie": "session=1"}))
    with open_client(Places((web.url,))) as client:
        client.get(url)
        client.get(url)
    assert all("cookie" not in request.headers for request in web.requests)


def test_proxies_of_the_environment_are_not_used(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    url = web.on("/a", content(b"direct"))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with open_client(Places((web.url,))) as client:
        assert client.get(url).content == b"direct"


def test_the_next_address_is_tried_when_one_does_not_answer(web: Web) -> None:
    web.on("/a", content(b"here"))
    place = f"http://intra.example:{web.port}"
    with open_client(Places((place,)), resolve=addresses("127.0.0.2", "127.0.0.1")) as client:
        assert client.get(f"{place}/a").content == b"here"


def test_a_server_that_only_drips_is_left(web: Web) -> None:
    enough = threading.Event()
    pieces = [head(200, {"Content-Length": 1000}), *([b"x"] * 999)]
    url = web.on("/a", drip(pieces, wait=lambda: enough.wait(0.01)))
    with pytest.raises(httpx.ReadTimeout, match=r"only \d+ bytes came"):
        get(url, Places((web.url,)), stall_seconds=0.1)
    enough.set()


def test_a_header_without_end_is_refused(web: Web) -> None:
    url = web.on("/a", content(b"x", headers={"X-Long": "y" * 1_000_000}))
    with pytest.raises(httpx.RemoteProtocolError):
        get(url, Places((web.url,)))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate of intra.example, in one file."""
    folder = tmp_path_factory.mktemp("tls")
    key, made, both = folder / "key.pem", folder / "made.pem", folder / "both.pem"
    subprocess.run(
        shlex.split(
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30"
            " -subj /CN=intra.example -addext subjectAltName=DNS:intra.example"
            f" -keyout {shlex.quote(str(key))} -out {shlex.quote(str(made))}"
        ),
        check=True,
        capture_output=True,
    )
    both.write_bytes(key.read_bytes() + made.read_bytes())
    return both


class TlsWeb(Web):
    """A server with a certificate, which keeps the names that clients asked for."""

    def __init__(self, certificate: Path) -> None:
        self.names: list[str | None] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.sni_callback = lambda connection, name, _: self.names.append(name)
        super().__init__(tls=context)


def test_tls_is_verified_for_the_name_and_not_for_the_address(certificate: Path) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    with TlsWeb(certificate) as web:
        web.on("/a", content(b"private"))
        right, wrong = (f"https://{host}.example:{web.port}" for host in ("intra", "wrong"))
        places, here = Places((right, wrong)), addresses("127.0.0.1")
        assert get(f"{right}/a", places, resolve=here, tls=trusting).content == b"private"
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate verify failed"):
            get(f"{wrong}/a", places, resolve=here, tls=trusting)
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate verify failed"):
            get(f"{right}/a", places, resolve=here)
    assert web.names == ["intra.example", "wrong.example", "intra.example"]


def test_a_redirect_from_https_to_http_is_refused(certificate: Path, web: Web) -> None:
    web.on("/plain", content(b"plain"))
    trusting = ssl.create_default_context(cafile=str(certificate))
    with TlsWeb(certificate) as secure:
        secure.on("/a", redirect(f"{web.url}/plain"))
        place = f"https://intra.example:{secure.port}"
        places = Places((place, web.url))
        with pytest.raises(Invalid, match="redirects from https to http"):
            get(f"{place}/a", places, resolve=addresses("127.0.0.1"), tls=trusting)
    assert web.requests == []


def test_a_file_in_a_listed_place_is_opened(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a b.txt").write_bytes(b"content")
    (tmp_path / "in" / "inside").symlink_to("a b.txt")
    places = Places((f"file://{tmp_path}/in",))
    for name in ("a%20b.txt", "inside"):
        with open_file(f"file://{tmp_path}/in/{name}", places) as file:
            assert file.read() == b"content"


def test_a_link_cannot_leave_a_listed_place(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "in" / "file").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "folder").symlink_to(tmp_path)
    for name in ("file", "folder/secret", "../secret"):
        with pytest.raises(Invalid, match="add it to the collection's places"):
            open_file(f"file://{tmp_path}/in/{name}", Places((f"file://{tmp_path}/in",)))


@pytest.mark.parametrize("is_resolved", [False, True])
def test_a_link_put_there_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_resolved: bool
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a").write_bytes(b"secret")
    (tmp_path / "in" / "folder").mkdir()
    (tmp_path / "in" / "folder" / "a").write_bytes(b"good")

    def check_then_swap(url: str, places: Places) -> None:
        check_url(url, places)
        if is_resolved:
            real = (tmp_path / "in" / "folder").resolve()
            monkeypatch.setattr("penstock.ingest.intake.outbound.file_path", lambda url: real / "a")
        (tmp_path / "in" / "folder").rename(tmp_path / "gone")
        (tmp_path / "in" / "folder").symlink_to(tmp_path / "out")

    monkeypatch.setattr("penstock.ingest.intake.outbound.check_url", check_then_swap)
    with pytest.raises(NotFound if is_resolved else Invalid):
        open_file(f"file://{tmp_path}/in/folder/a", Places((f"file://{tmp_path}/in",)))


def test_a_special_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    places = Places((f"file://{tmp_path}", "file:///dev"))
    for url in (f"file://{tmp_path}/fifo", f"file://{tmp_path}", "file:///dev/zero"):
        with pytest.raises(Invalid, match="not a regular file"):
            open_file(url, places)
    with pytest.raises(NotFound, match="No such file"):
        open_file(f"file://{tmp_path}/missing", places)
