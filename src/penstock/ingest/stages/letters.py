"""Letters to depositors: sent if they can be, never in the way of the work."""

import logging
import time

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
    """Send a letter; gives why it could not be sent, or nothing.

    It may be sent twice, with one Message-ID, when the worker dies right after it. A server that
    takes long to fail is not tried again for a minute, with no letter.
    """
    if not letter.to or not shop.mailer.is_on:
        return ""
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
            if error.is_final:
                break
            if time.monotonic() - began > _PATIENCE_SECONDS:
                shop.mail_hangs_until = time.monotonic() + _HUNG_SECONDS
        except PenstockError as error:
            trouble = str(error)
            break
        else:
            return ""
    log.warning("a mail was not sent: %s", trouble)
    return f"the mail to {', '.join(letter.to)} was not sent: {trouble}"
