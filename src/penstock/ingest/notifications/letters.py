"""Letters that wait for delivery, kept in the database until a mail server has taken them.

A letter is written down before it is tried for the first time, so that neither a mail server that
is down nor the death of the worker loses it. Whoever tries a letter takes it for a while first, so
that two workers do not send it at once.
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
from penstock.ingest.notifications.mail import Letter, Undelivered

GIVEN_UP_AFTER: Micros = 5 * DAY  # as mail servers do
TAKEN_FOR: Micros = 300 * SECOND  # longer than a try takes

_PAUSE_MIN: Micros = 10 * SECOND
_PAUSE_MAX: Micros = 3600 * SECOND
_DOUBLINGS_MAX = 20
_TRIES = 3
_PAUSE_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0
# A server that hangs would hold up each batch, one after the other, for longer than its work takes.
_HUNG_SECONDS = 60.0
_AT_ONCE = 50
_NOTING_TRIES = 3

log = logging.getLogger(__name__)

_addresses = msgspec.json.Decoder(tuple[str, ...]).decode


class WaitingLetter(Row, frozen=True):
    """A letter that is not delivered yet; `trouble` is what its batch says about it."""

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
    def letter(self) -> Letter:
        """The letter as it is handed over."""
        return Letter(_addresses(self.recipients), self.subject, self.body, self.message_id)


class KeepLetter(Write, frozen=True):
    """Keep a letter until it is delivered. The worker that keeps it tries it first."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    batch_id: str
    letter: Letter

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """One row; a letter that is kept already stays as it is."""
        uow.tx.execute(
            "add_ingest_letter",
            message_id=self.letter.message_id,
            batch_id=self.batch_id,
            recipients=msgspec.json.encode(self.letter.to).decode(),
            subject=self.letter.subject,
            body=self.letter.text,
            now=now,
            next_at=now + TAKEN_FOR,
        )


class TakeLetter(Write, frozen=True):
    """Take a letter for one try; False if another worker has taken or delivered it."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    waiting: WaitingLetter

    def execute(self, uow: UnitOfWork, now: Micros) -> bool:
        """It is due again if the worker dies."""
        message_id = self.waiting.message_id
        row = uow.tx.fetch_one("ingest_letter_turn", message_id=message_id)
        if row is None or row[0] != self.waiting.next_at:
            return False
        uow.tx.execute("take_ingest_letter", message_id=message_id, next_at=now + TAKEN_FOR)
        return True


class PostponeLetter(Write, frozen=True):
    """Note who has not got a letter and why, and try it again later."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    message_id: str
    to: tuple[str, ...]
    trouble: str
    pause: Micros

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """One row."""
        uow.tx.execute(
            "postpone_ingest_letter",
            message_id=self.message_id,
            recipients=msgspec.json.encode(self.to).decode(),
            trouble=self.trouble,
            next_at=now + self.pause,
        )


class ForgetLetter(Write, frozen=True):
    """Forget a letter that is delivered, or given up."""

    exclusive: ClassVar[bool] = True  # it writes by itself

    message_id: str

    def execute(self, uow: UnitOfWork, now: Micros) -> None:
        """The row goes."""
        uow.tx.execute("forget_ingest_letter", message_id=self.message_id)


def due_letters(tx: Transaction, now: Micros, most: int) -> list[WaitingLetter]:
    """Letters that are to be tried again now."""
    return tx.rows(WaitingLetter, "due_ingest_letters", now=now, most=most)


def pause_after(tries: int) -> Micros:
    """How long a letter waits that was tried so many times."""
    return min(_PAUSE_MIN << min(tries, _DOUBLINGS_MAX), _PAUSE_MAX)


class _Outcome(NamedTuple):
    """Who may get a letter later and why, and the server's words about those who will not."""

    later: tuple[str, ...]
    lost: dict[str, str]
    trouble: str

    @property
    def loss(self) -> str:
        """Who will not get it, and why."""
        if not self.lost:
            return ""
        reasons = dict.fromkeys(
            reason if to in reason or reason == self.trouble else f"{to}: {reason}"
            for to, reason in self.lost.items()
        )
        return f"the mail to {', '.join(self.lost)} was not sent: {'; '.join(reasons)}"


def send(context: IngestContext, batch_id: str, letter: Letter) -> str:
    """Send a letter; returns why somebody has not got it, or nothing.

    A letter that cannot be delivered now is kept, and `go_round` tries it again. Whoever has got it
    is not sent it again, when it is tried again for others. It may be sent twice, with one
    Message-ID, when the worker dies right after it. A server that takes long to fail is not tried
    again for a minute, with no letter.
    """
    if not letter.to or not context.outbound.mailer.is_on:
        return ""
    context.write(KeepLetter(batch_id, letter))
    outcome = _try(context, letter, _TRIES)
    return _settle(context, letter.message_id, outcome, tries=0, since=context.runtime.clock())


def go_round(context: IngestContext) -> int:
    """Try the letters that wait; returns how many were tried."""
    if not context.outbound.mailer.is_on:
        return 0
    with context.catalog.read() as tx:
        due = due_letters(tx, context.runtime.clock(), _AT_ONCE)
    tried = 0
    for waiting in due:
        if context.runtime.is_stopping() or time.monotonic() < context.outbound.mail_hangs_until:
            break
        if context.catalog.submit(TakeLetter(waiting)).result():
            outcome = _try(context, waiting.letter, 1)
            words = _settle(
                context, waiting.message_id, outcome, tries=waiting.tries, since=waiting.since
            )
            _note_in_batch(context, waiting, words)
            tried += 1
    return tried


def _try(context: IngestContext, letter: Letter, tries: int) -> _Outcome:
    """Hand a letter over, in a few tries."""
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
                lost |= {to: said for to, said in error.refused.items() if to not in error.again}
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


def _settle(
    context: IngestContext, message_id: str, outcome: _Outcome, *, tries: int, since: int
) -> str:
    """Keep a letter that may be delivered later, forget any other; returns what is wrong."""
    until = since + GIVEN_UP_AFTER
    words = ""
    if outcome.later and context.runtime.clock() < until:
        words = (
            f"the mail to {', '.join(outcome.later)} is not sent yet: {outcome.trouble}; "
            f"it is tried again until {format_time(until)}"
        )
        context.write(PostponeLetter(message_id, outcome.later, words, pause_after(tries)))
    else:
        context.write(ForgetLetter(message_id))
        if outcome.later:
            words = f"the mail to {', '.join(outcome.later)} was not sent: {outcome.trouble}"
    words = "; ".join(filter(None, [outcome.loss, words]))
    if words:
        log.warning("%s", words)
    return words


def _note_in_batch(context: IngestContext, waiting: WaitingLetter, words: str) -> None:
    """Put the present state of a letter into its batch's message, in place of the earlier one."""
    for _ in range(_NOTING_TRIES):
        try:
            batch = context.store.batch(waiting.batch_id)
            if not waiting.trouble or waiting.trouble not in batch.message:
                return
            parts = batch.message.replace(waiting.trouble, words).split("; ")
            message = "; ".join(filter(None, parts))
            changed = replace(batch, message=message)
            context.store.change_batch(BatchChange(batch, changed, by_hand=True))
        except NotFound:  # it was cleaned away
            return
        except Conflict:  # it was changed meanwhile: look again
            continue
        else:
            return
