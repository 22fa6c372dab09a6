"""The table of errors and exit codes."""

from penstock import errors
from penstock.cli.main import INTERRUPTED
from penstock.cli.stdout import OutputError
from penstock.client import ApiError
from penstock.errors import PenstockError

__all__ = ["DONE", "FAILED", "GAPS", "INTERRUPTED", "USAGE", "exit_code"]

DONE = 0
FAILED = 1
USAGE = 2
GAPS = 3

EXIT_CODES: dict[type[PenstockError], int] = {
    errors.Malformed: USAGE,
    errors.Invalid: USAGE,
    errors.NotFound: FAILED,
    errors.Conflict: FAILED,
    errors.Unauthorized: FAILED,
    errors.Forbidden: FAILED,
    errors.TooLarge: FAILED,
    errors.Busy: FAILED,
    errors.Unavailable: FAILED,
    errors.Away: FAILED,
    ApiError: FAILED,
    OutputError: FAILED,
}

EXPLANATION = (
    "Exit codes: 0 done; 1 failed, with the reason on stderr; 2 a wrong command, setting or file; "
    "3 lots are missing or wrong; 130 interrupted."
)


def exit_code(error: PenstockError) -> int:
    """Return the exit code of the nearest class in the table."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
