"""Letters that wait for delivery, kept in the database until a mail server has taken them.

A letter is written down before it is tried for the first time, so that neither a mail server that
is down nor the death of the worker loses it. Whoever tries a letter takes it for a while first, so
that two workers do not send it at once.
"""

from typing import ClassVar

import msgspec

from penstock.catalog.commands.lookup import Write
from penstock.catalog.rows import Row
from penstock.catalog.unit_of_work import UnitOfWork
from penstock.clock import DAY, SECOND, Micros
from penstock.db import Transaction
from penstock.ingest.notifications.mail import Letter

GIVEN_UP_AFTER: Micros = 5 * DAY  # as mail servers do
TAKEN_FOR: Micros = 300 * SECOND  # longer than a try takes

_PAUSE_MIN: Micros = 10 * SECOND
_PAUSE_MAX: Micros = 3600 * SECOND
_DOUBLINGS_MAX = 20

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
