"""Letters to depositors: sent if they can be, never in the way of the work."""

import logging
import time

from msgspec.structs import replace

from penstock.errors import PenstockError
from penstock.ingest.telling.mail import Letter, Undelivered
from penstock.ingest.workshop import Workshop

log = logging.getLogger(__name__)

_TRIES = 3
_PAUSE_SECONDS = 2.0
_PATIENCE_SECONDS = 10.0
# A server that hangs would hold up each batch, one after the other, for longer than its work takes.
_HUNG_SECONDS = 60.0


def send(shop: Workshop, letter: Letter) -> str:
    """Send a letter; gives why it could not be sent and to whom, or nothing.

    Whoever has got it is not sent it again, when it is tried again for others. It may be sent
    twice, with one Message-ID, when the worker dies right after it. A server that takes long to
    fail is not tried again for a minute, with no letter.
    """
    if not letter.to or not shop.mailer.is_on:
        return ""
    lost: dict[str, str] = {}
    trouble = ""
    for number in range(_TRIES):
        if time.monotonic() < shop.mail_hangs_until:
            trouble = trouble or "the mail server hung with a letter just before this one"
            break
        if number:
            shop.pause(_PAUSE_SECONDS * number)
        began = time.monotonic()
        try:
            shop.mailer.send(letter)
        except Undelivered as error:
            trouble = str(error)
            if error.refused:
                lost |= {to: said for to, said in error.refused.items() if to not in error.again}
                letter = replace(letter, to=error.again)
            if error.is_final:
                break
            if time.monotonic() - began > _PATIENCE_SECONDS:
                shop.mail_hangs_until = time.monotonic() + _HUNG_SECONDS
        except PenstockError as error:
            trouble = str(error)
            break
        else:
            letter, trouble = replace(letter, to=()), ""
            break
    left = ", ".join([*lost, *letter.to])
    if not left:
        return ""
    others = (f"{to}: {said}" for to, said in lost.items() if to not in trouble)
    reason = "; ".join(filter(None, [trouble, *others]))
    log.warning("a mail was not sent: %s", reason)
    return f"the mail to {left} was not sent: {reason}"
