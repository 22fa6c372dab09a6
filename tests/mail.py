"""A real SMTP server for tests that can be made to misbehave.

with MailServer.start() as mail:
    Mailer.open(mail.url, "penstock@example.org").send(letter)
assert mail.messages[0]["Subject"] == letter.subject
"""

import asyncio
import email
import email.policy
import socket
import ssl
import tempfile
from asyncio import AbstractServer
from collections.abc import Awaitable, Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Literal, Self

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

Tls = Literal["none", "starttls", "smtps"]

HOST = "127.0.0.1"
NO_SUCH_MAILBOX = "550 5.1.1 no such mailbox"
LOGIN_FIRST = "530 5.7.0 log in first"
TRY_AGAIN = "451 4.3.0 try again later"
# Made for these tests, for localhost, until 2120. The key protects nothing.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBiTCCAS6gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABIxehCyq4EnWrXb0
aAErTsVMxUIWOxoazaXeQ2JDBTGNbj+ZQwgedbgYdiSYR/JnUnaDFKlCXaYEu/Pz
oxAeO86jbzBtMBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAPBgNVHRMBAf8E
BTADAQH/MB0GA1UdDgQWBBTNsj6h70UkEBPNBYGd95sxqsPdBzAfBgNVHSMEGDAW
gBTNsj6h70UkEBPNBYGd95sxqsPdBzAKBggqhkjOPQQDAgNJADBGAiEA57HXPRwu
WTrmYxJzFlu1TYWQIHeuxYexzzkOnu8wMkQCIQCmOZ3otvI1bOKsnYpynzR4WktE
OdDRJSHrT+PiTja/SQ==
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/eWqLmV0o8yB8isj
had66QA3teGeEL08dH6iw6nMB6qhRANCAASMXoQsquBJ1q129GgBK07FTMVCFjsa
Gs2l3kNiQwUxjW4/mUMIHnW4GHYkmEfyZ1J2gxSpQl2mBLvz86MQHjvO
-----END PRIVATE KEY-----
"""


class MailServer:
    """An SMTP server on a free port; `messages` holds the accepted mails in order.

    A change of its behavior lasts until the next change.
    """

    def __init__(self, tls: Tls, users: Mapping[str, str]) -> None:
        self.messages: list[EmailMessage] = []
        self.recipients: list[tuple[str, ...]] = []
        self.logins: list[str] = []
        self._users = users
        self._refusals: dict[str | None, str] = {}
        self._trouble: Literal["none", "drop", "hang", "lose the answer"] = "none"
        self._tls = tls
        self._socket = socket.create_server((HOST, 0))
        self._controller = _Controller(self, self._socket, tls)

    @classmethod
    def start(
        cls,
        *,
        tls: Tls = "none",
        users: Mapping[str, str] | None = None,
    ) -> Self:
        """Start a server. With users it requires a login."""
        server = cls(tls, users or {})
        server._controller.start()
        return server

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop the server and close its connections."""
        self._controller.stop()
        self._socket.close()

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        """The URL without a login."""
        return f"{'smtps' if self._tls == 'smtps' else 'smtp'}://{HOST}:{self.port}"

    def url_for(self, user: str, password: str) -> str:
        """Return the URL with this login."""
        return self.url.replace("://", f"://{user}:{password}@")

    def refuse(self, *addresses: str, answer: str = NO_SUCH_MAILBOX) -> None:
        """Refuse these recipients, or all if there are none."""
        self._refusals.update(dict.fromkeys(addresses or (None,), answer))

    def defer(self, *addresses: str) -> None:
        """Refuse these recipients temporarily, or all if there are none."""
        self.refuse(*addresses, answer=TRY_AGAIN)

    def drop(self) -> None:
        """Close the connection when a mail arrives, and do not keep the mail."""
        self._trouble = "drop"

    def hang(self) -> None:
        """Never answer when a mail arrives: any client times out first."""
        self._trouble = "hang"

    def drop_answer(self) -> None:
        """Keep the mail and close the connection before the answer."""
        self._trouble = "lose the answer"

    def recover(self) -> None:
        """Return to normal behavior."""
        self._refusals.clear()
        self._trouble = "none"

    # aiosmtpd calls these methods in the server's thread.

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self._users and not session.authenticated:
            return LOGIN_FIRST
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        refusal = self._refusals.get(address) or self._refusals.get(None)
        if refusal is None:
            envelope.rcpt_tos.append(address)
        return refusal or "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self._trouble == "hang":
            await asyncio.Event().wait()
        if self._trouble != "drop":
            content = envelope.content
            assert isinstance(content, bytes)
            self.recipients.append(tuple(envelope.rcpt_tos))
            message = email.message_from_bytes(content, policy=email.policy.default)
            assert isinstance(message, EmailMessage)
            self.messages.append(message)
        if self._trouble in ("drop", "lose the answer"):
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
        return "250 OK"

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, login: Any
    ) -> AuthResult:
        """Return whether the user's password is right."""
        assert isinstance(login, LoginPassword)
        name = login.login.decode()
        good = self._users.get(name) == login.password.decode()
        if good:
            self.logins.append(name)
        return AuthResult(success=good, handled=good)


class _Controller(Controller):
    """Listens on an open socket, so that no other process can take its port."""

    def __init__(self, mail: MailServer, listening: socket.socket, tls: str) -> None:
        context = None if tls == "none" else server_context()
        super().__init__(
            mail,
            hostname=HOST,
            port=listening.getsockname()[1],
            ssl_context=context if tls == "smtps" else None,
            tls_context=context if tls == "starttls" else None,
            authenticator=mail.authenticate,
            auth_require_tls=False,
        )
        self._listening = listening

    def _create_server(self) -> Awaitable[AbstractServer]:
        return self.loop.create_server(
            self._factory_invoker, sock=self._listening, ssl=self.ssl_context
        )


def server_context() -> ssl.SSLContext:
    """TLS with the certificate of these tests. A client trusts it if SSL_CERT_FILE holds it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        Path(file.name).write_text(KEY + CERTIFICATE)
        context.load_cert_chain(file.name)
    return context
