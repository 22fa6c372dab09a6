"""Mail through an SMTP server.

A mail server may accept a letter although its answer is lost. Such a letter is sent again with the
same Message-ID, so that mail systems recognize the duplicate.
"""

import re
import smtplib
import ssl
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.charset import QP, Charset
from email.header import Header
from email.mime.text import MIMEText
from email.policy import compat32
from email.utils import format_datetime
from typing import Self
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from msgspec import Struct

from penstock.clock import Clock, Micros, system_clock, to_datetime
from penstock.errors import Invalid, Unavailable

TIMEOUT_SECONDS = 30.0
ADDRESS_LENGTH_MAX = 254
SUBJECT_LENGTH_MAX = 500
SUBJECT_LINE_MAX = 66
WORDS_LENGTH_MAX = 300
_PORTS = {"smtp": 25, "smtps": 465}
_FORM = "write it like smtp://user:password@host:587?starttls=yes or smtps://host:465"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_ADDRESS = re.compile(rf"(?=.{{1,64}}@){_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")
_MESSAGE_ID = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
# A login failure is a fault of the configuration, so the letter is retried.
_LOGIN_CODES = frozenset({530, 534, 535, 538})
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})
# Some mail systems misread a folded Message-ID, so lines are folded only where required.
_WIRE = compat32.clone(linesep="\r\n", max_line_length=998)


class Undelivered(Unavailable):
    """A letter was not accepted for all addresses; `refused` has the server's answer by address.

    `again` are the refused addresses that may accept it later. `is_final` means that the server
    would refuse the same letter again.
    """

    def __init__(
        self,
        message: str,
        *,
        refused: Mapping[str, str] | None = None,
        again: Sequence[str] = (),
        is_final: bool = False,
    ) -> None:
        super().__init__(message)
        self.refused = dict(refused or {})
        self.again = tuple(again)
        self.is_final = is_final


class MailLetter(Struct, frozen=True):
    """A mail message. `message_id` is the part before the @; the sender's domain follows it."""

    to: tuple[str, ...]
    subject: str
    text: str
    message_id: str


class MailServerUrl(Struct, frozen=True):
    """A mail server and its account; its text never contains the password."""

    host: str
    port: int
    tls: bool
    starttls: bool
    user: str | None
    password: str | None

    @classmethod
    def parse(cls, url: str) -> Self:
        """Parse smtp://[user:password@]host[:port][?starttls=yes|no] or smtps://…

        A password requires TLS, unless the URL has starttls=no.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            # The error's text and chain may contain the password.
            raise Invalid(f"the URL of the mail server cannot be read; {_FORM}") from None
        if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/"):
            raise Invalid(f"the URL of the mail server is not one; {_FORM}")
        user = None if parts.username is None else unquote(parts.username)
        password = None if parts.password is None else unquote(parts.password)
        if (user is None) != (password is None) or not f"{user}{password}".isascii():
            raise Invalid(
                "the URL of the mail server needs both a user and a password, in ASCII, or "
                f"neither; {_FORM}"
            )
        return cls(
            host=parts.hostname,
            port=_PORTS[parts.scheme] if port is None else port,
            tls=parts.scheme == "smtps",
            starttls=_wants_starttls(parts, default=user is not None),
            user=user,
            password=password,
        )

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'smtps' if self.tls else 'smtp'}://{host}:{self.port}"

    def __repr__(self) -> str:
        return f"MailPlace({self})"


class Mailer:
    """A sender of letters, one SMTP session each; without a server it is off."""

    def __init__(
        self, server: MailServerUrl | None, sender: str, timeout_seconds: float, clock: Clock
    ) -> None:
        self._server = server
        self._sender = sender
        self._timeout_seconds = timeout_seconds
        self._clock = clock

    @classmethod
    def open(
        cls,
        url: str | None,
        sender: str = "",
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        clock: Clock = system_clock,
    ) -> Self:
        """Open a mailer for the server at this URL; None turns mail off."""
        if url is None:
            return cls(None, "", timeout_seconds, clock)
        return cls(MailServerUrl.parse(url), check_address(sender), timeout_seconds, clock)

    @property
    def is_on(self) -> bool:
        """Whether a mail server is configured."""
        return self._server is not None

    def send(self, letter: MailLetter) -> bool:
        """Send a letter; True means that the server accepted it for every address.

        When this raises Undelivered, some addresses may be accepted: `refused` has the others.
        """
        server = self._server
        if server is None:
            return False
        message = compose_message(letter, self._sender, self._clock())
        try:
            refused = self._transmit(server, [*dict.fromkeys(letter.to)], message)
        except smtplib.SMTPRecipientsRefused as error:
            refused = error.recipients
        except (smtplib.SMTPException, OSError) as error:
            raise _undelivered(server, error) from None
        if refused:
            raise _refused(server, refused)
        return True

    def _transmit(
        self, server: MailServerUrl, to: list[str], message: bytes
    ) -> dict[str, tuple[int, bytes]]:
        smtp = self._connect(server)
        try:
            if server.starttls:
                smtp.starttls(context=ssl.create_default_context())
            if server.user is not None and server.password is not None:
                smtp.login(server.user, server.password)
            refused = smtp.sendmail(self._sender, to, message)
            # The letter is accepted; errors of QUIT do not matter.
            with suppress(smtplib.SMTPException, OSError):
                smtp.quit()
            return refused
        finally:
            smtp.close()

    def _connect(self, server: MailServerUrl) -> smtplib.SMTP:
        if not server.tls:
            return smtplib.SMTP(server.host, server.port, timeout=self._timeout_seconds)
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(
            server.host, server.port, timeout=self._timeout_seconds, context=context
        )


def check_address(text: str) -> str:
    """Return the address; Invalid unless it is plain ASCII without name, comment or quotes."""
    if len(text) > ADDRESS_LENGTH_MAX or not _ADDRESS.fullmatch(text):
        raise Invalid(f"{text[:64]!r} is not a mail address; write it like name@example.org")
    return text


def compose_message(letter: MailLetter, sender: str, now: Micros) -> bytes:
    """Encode a letter for SMTP; its text cannot add a header or a recipient."""
    if not letter.to:
        raise Invalid(f"the letter {letter.subject[:64]!r} has no address to go to; give one")
    if len(letter.message_id) > 200 or not _MESSAGE_ID.fullmatch(letter.message_id):
        raise Invalid(
            f"{letter.message_id[:64]!r} cannot be part of a Message-ID; use ASCII letters, "
            "digits, '.', '-' and '_'"
        )
    if len(letter.subject) > SUBJECT_LENGTH_MAX or any(map(is_unprintable, letter.subject)):
        raise Invalid(
            f"{letter.subject[:64]!r} cannot be a subject; write one line of at most "
            f"{SUBJECT_LENGTH_MAX} characters"
        )
    # Some servers accept only seven bits, so the text is quoted-printable.
    charset = Charset("utf-8")
    charset.body_encoding = QP
    text = letter.text.encode("utf-8", "replace").decode()
    # The type stubs accept only the names of charsets.
    message = MIMEText(text, "plain", charset)  # type: ignore[arg-type]
    message["From"] = sender
    message["To"] = ", ".join(dict.fromkeys(map(check_address, letter.to)))
    message["Subject"] = _subject(letter.subject)
    message["Date"] = format_datetime(to_datetime(now))
    message["Message-ID"] = f"<{letter.message_id}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    return message.as_bytes(policy=_WIRE)


def is_unprintable(character: str) -> bool:
    """Whether a character is a control, a line separator or half a surrogate pair."""
    return unicodedata.category(character) in _UNPRINTABLE


def _subject(text: str) -> str:
    # EmailMessage would decode text that looks encoded, and write its line ends raw.
    is_plain = text.isascii() and "=?" not in text and len(text) <= SUBJECT_LINE_MAX
    return Header(text, "us-ascii" if is_plain else "utf-8", header_name="Subject").encode()


def _wants_starttls(parts: SplitResult, *, default: bool) -> bool:
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    starttls = options.pop("starttls", None)
    if options or starttls not in (None, "yes", "no"):
        raise Invalid(f"the URL of the mail server takes starttls=yes or no and no other; {_FORM}")
    if parts.scheme == "smtps":
        if starttls == "yes":
            raise Invalid("smtps is under TLS from the start; leave out starttls, or use smtp")
        return False
    return default if starttls is None else starttls == "yes"


def _undelivered(server: MailServerUrl, error: Exception) -> Undelivered:
    if isinstance(error, smtplib.SMTPResponseException):
        words, code = _words(error.smtp_code, error.smtp_error), error.smtp_code
    else:
        words, code = _plain(str(error) or type(error).__name__), 0
    about_letter = isinstance(error, smtplib.SMTPSenderRefused | smtplib.SMTPDataError)
    return Undelivered(
        f"the mail server {server} did not take the letter: {words}; look at that server, and at "
        "the URL and sender that are configured",
        is_final=about_letter and _is_final(code),
    )


def _refused(server: MailServerUrl, refused: Mapping[str, tuple[int, bytes]]) -> Undelivered:
    words = {address: _words(*answer) for address, answer in refused.items()}
    listed = "; ".join(f"{address}: {answer}" for address, answer in words.items())
    again = [address for address, (code, _) in refused.items() if not _is_final(code)]
    return Undelivered(
        f"the mail server {server} refused the letter for {listed}; correct the addresses, or try "
        "again later",
        refused=words,
        again=again,
        is_final=not again,
    )


def _is_final(code: int) -> bool:
    return 500 <= code < 600 and code not in _LOGIN_CODES


def _words(code: int, answer: bytes | str) -> str:
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return _plain(f"{code} {text}")


def _plain(text: str) -> str:
    printable = "".join(" " if is_unprintable(each) else each for each in text)
    return " ".join(printable.split())[:WORDS_LENGTH_MAX]
