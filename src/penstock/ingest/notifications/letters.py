"""The outbox of letters to depositors, in the database until a mail server accepts them.

A letter is stored before its first try, so that it survives a mail server that is down and the
death of the worker. A worker leases a letter before it tries it, so that two workers do not send it
at once.
"""

import logging
import time
from typing import ClassVar, NamedTuple

import msgspec
from msgspec.structs import replace

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import DAY, SECOND, Micros, format_time
from penstock.db import Transaction
from penstock.errors import Conflict, NotFound, PenstockError
from penstock.ingest.context import IngestContext
from penstock.ingest.models import BatchChange
from penstock.ingest.notifications.mail import MailLetter, Undelivered

LETTER_LIFETIME: Micros = 5 * DAY  # as mail servers do
LETTER_LEASE: Micros = 300 * SECOND  # must be longer than a try

_PAUSE_MIN: Micros = 10 * SECOND
_PAUSE_MAX: Micros = 3600 * SECOND
_DOUBLINGS_MAX = 20
_TRIES = 3
_PAUSE_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0
# A server that hangs would delay every batch for longer than its work takes.
_HUNG_SECONDS = 60.0
_AT_ONCE = 50
_NOTING_TRIES = 3

log = logging.getLogger(__name__)

_addresses = msgspec.json.Decoder(tuple[str, ...]).decode


class WaitingLetter(Row, frozen=True):
    """A letter that is not delivered yet; `trouble` is the text about it in its batch's message."""

    message_id: str
    batch_id: str
    recipients: str
    subject: str
    body: str
    tries: int
    since: Micros
    next_at: Micros
    trouble: str

    @property
    def letter(self) -> MailLetter:
        """The letter to send."""
        return MailLetter(_addresses(self.recipients), self.subject, self.body, self.message_id)


class StoreLetter(Write, frozen=True):
    """Store a letter until it is delivered, leased to the worker that stores it."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    batch_id: str
    letter: MailLetter

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """Do nothing if the letter is already stored."""
        uow.tx.execute(
            "add_ingest_letter",
            message_id=self.letter.message_id,
            batch_id=self.batch_id,
            recipients=msgspec.json.encode(self.letter.to).decode(),
            subject=self.letter.subject,
            body=self.letter.text,
            now=now,
            next_at=now + LETTER_LEASE,
        )


class ClaimLetter(Write, frozen=True):
    """Lease a letter for one try; False if another worker has leased or delivered it."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    waiting: WaitingLetter

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """Set the time when the lease ends and the letter is due again."""
        message_id = self.waiting.message_id
        row = uow.tx.fetch_one("ingest_letter_turn", message_id=message_id)
        if row is None or row[0] != self.waiting.next_at:
            return False
        uow.tx.execute("take_ingest_letter", message_id=message_id, next_at=now + LETTER_LEASE)
        return True


class PostponeLetter(Write, frozen=True):
    """Store the open addresses and the reason, and the time of the next try."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    message_id: str
    to: tuple[str, ...]
    trouble: str
    pause: Micros

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tx.execute(
            "postpone_ingest_letter",
            message_id=self.message_id,
            recipients=msgspec.json.encode(self.to).decode(),
            trouble=self.trouble,
            next_at=now + self.pause,
        )


class DeleteLetter(Write, frozen=True):
    """Delete a letter that is delivered or abandoned."""

    exclusive: ClassVar[bool] = True  # it writes without the table caches

    message_id: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        uow.tx.execute("forget_ingest_letter", message_id=self.message_id)


def due_letters(tx: Transaction, now: Micros, most: int) -> list[WaitingLetter]:
    """Return letters that are due."""
    return tx.rows(WaitingLetter, "due_ingest_letters", now=now, most=most)


def backoff_after(tries: int) -> Micros:
    """Return the backoff after a number of tries."""
    return min(_PAUSE_MIN << min(tries, _DOUBLINGS_MAX), _PAUSE_MAX)


class _Outcome(NamedTuple):
    """The addresses to retry, the addresses that failed with the server's answer, and the error."""

    later: tuple[str, ...]
    lost: dict[str, str]
    trouble: str

    @property
    def loss(self) -> str:
        """Describe the addresses that failed."""
        if not self.lost:
            return ""
        reasons = dict.fromkeys(
            reason if to in reason or reason == self.trouble else f"{to}: {reason}"
            for to, reason in self.lost.items()
        )
        return f"the mail to {', '.join(self.lost)} was not sent: {'; '.join(reasons)}"


def send(context: IngestContext, batch_id: str, letter: MailLetter) -> str:
    """Send a letter; return why some addresses did not get it, or an empty text.

    A letter that cannot be delivered now is stored, and `go_round` tries it again for the addresses
    that are open. If the worker dies right after sending, the letter is sent twice with the same
    Message-ID. After a slow failure no letter is tried for a minute.
    """
    if not letter.to or not context.outbound.mailer.is_on:
        return ""
    context.write(StoreLetter(batch_id, letter))
    outcome = _try(context, letter, _TRIES)
    return _store_outcome(
        context, letter.message_id, outcome, tries=0, since=context.runtime.clock()
    )


def go_round(context: IngestContext) -> int:
    """Try the letters that are due; return their number."""
    if not context.outbound.mailer.is_on:
        return 0
    with context.catalog.read() as tx:
        due = due_letters(tx, context.runtime.clock(), _AT_ONCE)
    tried = 0
    for waiting in due:
        if context.runtime.is_stopping() or time.monotonic() < context.outbound.mail_hangs_until:
            break
        if context.catalog.submit(ClaimLetter(waiting)).result():
            outcome = _try(context, waiting.letter, 1)
            words = _store_outcome(
                context, waiting.message_id, outcome, tries=waiting.tries, since=waiting.since
            )
            _note_in_batch(context, waiting, words)
            tried += 1
    return tried


def _try(context: IngestContext, letter: MailLetter, tries: int) -> _Outcome:
    """Send a letter in a few tries."""
    lost: dict[str, str] = {}
    trouble, is_final = "", False
    for number in range(tries):
        if time.monotonic() < context.outbound.mail_hangs_until:
            trouble = trouble or "the mail server hung with a letter just before this one"
            break
        if number:
            context.runtime.pause(_PAUSE_SECONDS * number)
        began = time.monotonic()
        try:
            context.outbound.mailer.send(letter)
        except Undelivered as error:
            trouble = str(error)
            if error.refused:
                lost |= {
                    to: answer for to, answer in error.refused.items() if to not in error.again
                }
                letter = replace(letter, to=error.again)
            is_final = error.is_final
            if is_final:
                break
            if time.monotonic() - began > _PATIENCE_SECONDS:
                context.outbound.mail_hangs_until = time.monotonic() + _HUNG_SECONDS
        except PenstockError as error:
            trouble, is_final = str(error), True
            break
        else:
            return _Outcome((), lost, "")
    if is_final:
        return _Outcome((), lost | dict.fromkeys(letter.to, trouble), trouble)
    return _Outcome(letter.to, lost, trouble)


def _store_outcome(
    context: IngestContext, message_id: str, outcome: _Outcome, *, tries: int, since: int
) -> str:
    """Store a letter to retry, delete any other; return a description of the trouble."""
    until = since + LETTER_LIFETIME
    words = ""
    if outcome.later and context.runtime.clock() < until:
        words = (
            f"the mail to {', '.join(outcome.later)} is not sent yet: {outcome.trouble}; "
            f"it is tried again until {format_time(until)}"
        )
        context.write(PostponeLetter(message_id, outcome.later, words, backoff_after(tries)))
    else:
        context.write(DeleteLetter(message_id))
        if outcome.later:
            words = f"the mail to {', '.join(outcome.later)} was not sent: {outcome.trouble}"
    words = "; ".join(filter(None, [outcome.loss, words]))
    if words:
        log.warning("%s", words)
    return words


def _note_in_batch(context: IngestContext, waiting: WaitingLetter, words: str) -> None:
    """Replace the text about a letter in its batch's message."""
    for _ in range(_NOTING_TRIES):
        try:
            batch = context.store.batch(waiting.batch_id)
            if not waiting.trouble or waiting.trouble not in batch.message:
                return
            parts = batch.message.replace(waiting.trouble, words).split("; ")
            message = "; ".join(filter(None, parts))
            changed = replace(batch, message=message)
            context.store.change_batch(BatchChange(batch, changed, by_hand=True))
        except NotFound:  # the batch was cleaned up
            return
        except Conflict:  # the batch was changed meanwhile: read it again
            continue
        else:
            return
