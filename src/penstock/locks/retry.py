"""The retry policy of failed work: exponential backoff, and a hold when the tries are used up."""

from penstock.clock import HOUR, SECOND, Micros
from penstock.locks.rows import LotJobRow, WorkRow

BACKOFF_MAX: Micros = HOUR
# A time further ahead than this was written by a wrong clock; clocks differ by some seconds.
CLOCK_AHEAD_MAX: Micros = HOUR


def is_out_of_tries(job: LotJobRow, row: WorkRow) -> bool:
    """Whether a failure of this claim holds the work until a person releases it."""
    return row.tries >= job.tries_max


def backoff(job: LotJobRow, tries: int) -> Micros:
    """Return the wait after so many tries: it doubles with each try, up to an hour."""
    return min((job.back_off_seconds * SECOND) << min(tries - 1, 30), BACKOFF_MAX)
