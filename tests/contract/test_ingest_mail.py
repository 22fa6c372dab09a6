"""Letters through a real SMTP server, good and bad."""

import socket
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.clock import parse_time, to_datetime
from penstock.errors import Invalid, Unavailable
from penstock.ingest.notifications.mail import (
    Mailer,
    MailLetter,
    MailServerUrl,
    Undelivered,
    check_address,
)
from tests.mail import CERTIFICATE, LOGIN_FIRST, NO_SUCH_MAILBOX, MailServer, Tls

NOW = parse_time("2026-11-15T10:00:00Z")
SENDER = "penstock@example.org"
LETTER = MailLetter(
    to=("anna@example.org",),
    subject="[Penstock] batch bid0000000001 of maps: 9 completed, 1 failed",
    text="Batch: bid0000000001\n\n.one dot\nFrom the start\n",
    message_id="bid0000000001.0197.report-1",
)
ONE_LINE = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=150
).map(str.strip)


@pytest.fixture(name="mail", scope="module")
def _mail() -> Iterator[MailServer]:
    with MailServer.start() as server:
        yield server


@pytest.fixture(autouse=True)
def _behave(mail: MailServer) -> None:
    mail.recover()
    mail.messages.clear()
    mail.recipients.clear()


def mailer(url: str, timeout_seconds: float = 30.0) -> Mailer:
    return Mailer.open(url, SENDER, timeout_seconds=timeout_seconds, clock=lambda: NOW)


def text_of(mail: MailServer) -> str:
    content = mail.messages[-1].get_content()
    assert isinstance(content, str)
    return content.replace("\r\n", "\n")


def test_a_letter_arrives_as_it_was_written(mail: MailServer) -> None:
    assert mailer(mail.url).send(LETTER) is True
    (message,) = mail.messages
    assert message["From"] == SENDER
    assert message["To"] == "anna@example.org"
    assert message["Subject"] == LETTER.subject
    assert message["Message-ID"] == "<bid0000000001.0197.report-1@example.org>"
    assert parsedate_to_datetime(message["Date"]) == to_datetime(NOW)
    assert message["Auto-Submitted"] == "auto-generated"
    assert text_of(mail) == LETTER.text


def test_a_letter_that_is_sent_again_has_the_same_message_id(mail: MailServer) -> None:
    mail.drop_answer()
    with pytest.raises(Undelivered) as caught:
        mailer(mail.url).send(LETTER)
    assert not caught.value.is_final
    mail.recover()
    mailer(mail.url).send(LETTER)
    first, second = mail.messages
    assert first["Message-ID"] == second["Message-ID"]


def test_every_address_gets_the_letter_once(mail: MailServer) -> None:
    everybody = ("anna@example.org", "ben@example.org", "anna@example.org")
    mailer(mail.url).send(replace(LETTER, to=everybody))
    assert mail.recipients == [("anna@example.org", "ben@example.org")]
    assert mail.messages[0]["To"] == "anna@example.org, ben@example.org"


@given(subject=ONE_LINE, lines=st.lists(ONE_LINE, max_size=5))
def test_any_script_arrives(mail: MailServer, subject: str, lines: list[str]) -> None:
    text = "\n".join([*lines, ""])
    mailer(mail.url).send(replace(LETTER, subject=subject, text=text))
    assert mail.messages[-1]["Subject"] == subject
    assert text_of(mail) == text


@pytest.mark.parametrize(
    "subject",
    [
        "map\nBcc: eve@example.org",
        "map\r\n\r\nbody",
        "map\x00",
        "map\x85x",
        "map\u2028x",
        "x" * 501,
    ],
)
def test_a_subject_cannot_add_a_header(mail: MailServer, subject: str) -> None:
    with pytest.raises(Invalid, match="cannot be a subject; write one line"):
        mailer(mail.url).send(replace(LETTER, subject=subject))
    assert mail.messages == []


def test_a_subject_that_looks_encoded_is_unchanged(mail: MailServer) -> None:
    subject = "=?utf-8?q?map=0D=0ABcc:_eve@example.org?="
    mailer(mail.url).send(replace(LETTER, subject=subject))
    (message,) = mail.messages
    assert message["Bcc"] is None
    assert message.get_content().replace("\r\n", "\n") == LETTER.text
    raw = dict(message.raw_items())["Subject"]
    assert "map" not in raw
    assert mail.recipients == [("anna@example.org",)]


@pytest.mark.parametrize(
    "message_id", ["", "a b", "a>\nBcc: eve@example.org", "a@b", "ä", "a" * 201]
)
def test_a_message_id_cannot_add_a_header(mail: MailServer, message_id: str) -> None:
    with pytest.raises(Invalid, match="cannot be part of a Message-ID"):
        mailer(mail.url).send(replace(LETTER, message_id=message_id))
    assert mail.messages == []


def test_a_letter_without_addresses_is_refused(mail: MailServer) -> None:
    with pytest.raises(Invalid, match="has no address to go to"):
        mailer(mail.url).send(replace(LETTER, to=()))


@pytest.mark.parametrize(
    "address",
    [
        "a@b",
        "anna@example.org",
        "a.b+c@sub.example-1.org",
        "o'neil@example.org",
        "x" * 64 + "@b.org",
    ],
)
def test_an_address_that_is_one(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize(
    "address",
    [
        "",
        "anna",
        "@example.org",
        "anna@",
        "anna@example.org\n",
        "anna@example.org\nBcc: eve@example.org",
        "anna@example.org, eve@example.org",
        "Anna <anna@example.org>",
        "anna@@example.org",
        ".anna@example.org",
        "anna..b@example.org",
        "an na@example.org",
        '"anna"@example.org',
        "anna@-example.org",
        "anna@example..org",
        "anna@[127.0.0.1]",
        "ännä@example.org",
        "anna@exämple.org",
        "x" * 65 + "@example.org",
        "a@" + ".".join(["x" * 60] * 5),
    ],
)
def test_an_address_that_is_none(mail: MailServer, address: str) -> None:
    with pytest.raises(Invalid, match=r"is not a mail address; write it like name@example\.org"):
        check_address(address)
    with pytest.raises(Invalid, match="is not a mail address"):
        mailer(mail.url).send(replace(LETTER, to=("anna@example.org", address)))
    with pytest.raises(Invalid, match="is not a mail address"):
        Mailer.open(mail.url, address)
    assert mail.messages == []


def test_a_refused_address_is_named_with_the_servers_words(mail: MailServer) -> None:
    mail.refuse()
    with pytest.raises(Undelivered) as caught:
        mailer(mail.url).send(LETTER)
    assert str(caught.value) == (
        f"the mail server {mail.url} refused the letter for anna@example.org: {NO_SUCH_MAILBOX}; "
        "correct the addresses, or try again later"
    )
    assert caught.value.refused == {"anna@example.org": NO_SUCH_MAILBOX}
    assert caught.value.is_final


def test_one_refused_address_does_not_keep_the_letter_from_the_others(mail: MailServer) -> None:
    mail.refuse("ben@example.org")
    with pytest.raises(Undelivered) as caught:
        mailer(mail.url).send(replace(LETTER, to=("anna@example.org", "ben@example.org")))
    assert set(caught.value.refused) == {"ben@example.org"}
    assert mail.recipients == [("anna@example.org",)]


def test_a_refusal_for_now_is_not_final(mail: MailServer) -> None:
    mail.defer()
    with pytest.raises(Unavailable, match=r"451 4\.3\.0 try again later") as caught:
        mailer(mail.url).send(LETTER)
    assert isinstance(caught.value, Undelivered)
    assert not caught.value.is_final


def test_a_server_that_hangs_up(mail: MailServer) -> None:
    mail.drop()
    with pytest.raises(Undelivered, match=f"{mail.url} did not take the letter") as caught:
        mailer(mail.url).send(LETTER)
    assert not caught.value.is_final
    assert mail.messages == []


def test_a_server_that_does_not_answer() -> None:
    with MailServer.start() as silent:
        silent.hang()
        with pytest.raises(Undelivered, match=r"did not take the letter: .*timed out"):
            mailer(silent.url, timeout_seconds=0.2).send(LETTER)


def test_no_server_at_all() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closing:
        port = closing.getsockname()[1]
    with pytest.raises(Undelivered, match=f"smtp://127.0.0.1:{port} did not take .*refused"):
        mailer(f"smtp://127.0.0.1:{port}").send(LETTER)


def test_without_a_url_nothing_is_sent() -> None:
    off = Mailer.open(None)
    assert not off.is_on
    assert off.send(LETTER) is False


@pytest.fixture(name="trusted")
def _trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "certificate.pem").write_text(CERTIFICATE)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("tls", ["starttls", "smtps"])
def test_a_login_goes_over_tls(tls: Tls) -> None:
    with MailServer.start(tls=tls, users={"penstock": "s3cret/@"}) as server:
        assert mailer(server.url_for("penstock", "s3cret%2F%40")).send(LETTER)
        assert server.logins == ["penstock"]
        assert len(server.messages) == 1


@pytest.mark.usefixtures("trusted")
def test_a_wrong_password_is_not_printed() -> None:
    with MailServer.start(tls="smtps", users={"penstock": "right"}) as server:
        with pytest.raises(
            Undelivered, match=f"{server.url} did not take the letter: 535"
        ) as caught:
            mailer(server.url_for("penstock", "wr0ng")).send(LETTER)
        assert "wr0ng" not in str(caught.value)
        assert not caught.value.is_final
        assert server.messages == []


def test_a_server_that_wants_a_login() -> None:
    with MailServer.start(users={"penstock": "s3cret"}) as server:
        with pytest.raises(Undelivered, match=LOGIN_FIRST) as caught:
            mailer(server.url).send(LETTER)
        assert not caught.value.is_final
        assert server.messages == []


def test_a_password_needs_tls_unless_the_url_disables_it() -> None:
    with MailServer.start(users={"penstock": "s3cret"}) as server:
        url = server.url_for("penstock", "s3cret")
        with pytest.raises(Undelivered, match="STARTTLS extension not supported"):
            mailer(url).send(LETTER)
        assert server.logins == []
        assert mailer(f"{url}?starttls=no").send(LETTER)
        assert server.logins == ["penstock"]


@pytest.mark.parametrize("tls", ["starttls", "smtps"])
def test_an_untrusted_certificate_is_refused(tls: Tls) -> None:
    with MailServer.start(tls=tls) as server:
        url = f"{server.url}?starttls=yes" if tls == "starttls" else server.url
        with pytest.raises(Undelivered, match="certificate verify failed"):
            mailer(url).send(LETTER)
        assert server.messages == []


@pytest.mark.parametrize(
    ("url", "shown", "starttls"),
    [
        ("smtp://mail.example.org", "smtp://mail.example.org:25", False),
        ("smtp://mail.example.org:587?starttls=yes", "smtp://mail.example.org:587", True),
        ("smtp://u:pw@mail.example.org/", "smtp://mail.example.org:25", True),
        ("smtp://u:pw@mail.example.org?starttls=no", "smtp://mail.example.org:25", False),
        ("smtps://u:pw@[::1]", "smtps://[::1]:465", False),
    ],
)
def test_a_url_of_a_mail_server(url: str, shown: str, starttls: bool) -> None:
    place = MailServerUrl.parse(url)
    assert str(place) == shown
    assert place.starttls is starttls
    assert "pw" not in repr(place)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mail.example.org:25",
        "http://u:pa55@mail.example.org",
        "smtp://",
        "smtp://u:pa55@mail.example.org:pa55",
        "smtp://u:pa55@[::1",
        "smtp://u:pa55@mail.example.org/path",
        "smtp://u@mail.example.org",
        "smtp://u:pä55@mail.example.org",
        "smtp://u:pa55@mail.example.org?starttls=maybe",
        "smtp://u:pa55@mail.example.org?tls=yes",
        "smtps://u:pa55@mail.example.org?starttls=yes",
    ],
)
def test_a_url_that_is_none_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(Invalid) as caught:
        Mailer.open(url, SENDER)
    assert "55" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
