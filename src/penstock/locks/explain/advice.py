"""Commands that end holds and retry work, ready to type."""

import shlex


def release_job(job: str) -> str:
    """Release the hold of a whole job."""
    return _command("jobs", "release", job)


def release_dataset(dataset: str) -> str:
    """Release the hold of a whole dataset."""
    return _command("datasets", "release", dataset)


def release_lot(dataset: str, lot: str) -> str:
    """Release the hold of one lot."""
    return _command("lots", "release", dataset, lot)


def accept_lot(dataset: str, lot: str) -> str:
    """Accept a lot although checks of it failed."""
    return _command("quality", "accept", dataset, lot)


def release_work(job: str, lot: str) -> str:
    """Release the hold of a job's work on one lot."""
    return _command("work", "release", job, lot)


def retry(job: str, lot: str) -> str:
    """Retry failed work on a lot, with all its tries."""
    return _command("work", "retry", job, lot)


def run_arc(arc: str) -> str:
    """Make one lot of an arc at once."""
    return f"{shlex.join(['penstock', 'arcs', 'run', arc])} LOT"


def _command(*words: str) -> str:
    return f"{shlex.join(['penstock', *words])} --why REASON"
