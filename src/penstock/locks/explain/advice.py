"""Commands that end holds and retry work, ready to type."""

import shlex


def unhold_job(job: str) -> str:
    """Release the hold of a whole job."""
    return _command("unhold", "job", job)


def unhold_dataset(dataset: str) -> str:
    """Release the hold of a whole dataset."""
    return _command("unhold", "dataset", dataset)


def unhold_lot(dataset: str, lot: str) -> str:
    """Release the hold of one lot."""
    return _command("lots", "unhold", dataset, lot)


def accept_lot(dataset: str, lot: str) -> str:
    """Accept a lot although checks of it failed."""
    return _command("quality", "accept", dataset, lot)


def unhold_work(job: str, lot: str) -> str:
    """Release the hold of a job's work on one lot."""
    return _command("work", "unhold", job, lot)


def resubmit(job: str, lot: str) -> str:
    """Retry a lot with all attempts."""
    return _command("work", "resubmit", job, lot)


def run_arc(arc: str) -> str:
    """Make one lot of an arc at once."""
    return f"{shlex.join(['penstock', 'arcs', 'run', arc])} LOT"


def _command(*words: str) -> str:
    return f"{shlex.join(['penstock', *words])} --why REASON"
