"""What `hold` and `release` report."""

from penstock.cli.formats import show_time
from penstock.cli.options import Options
from penstock.cli.output import write_line
from penstock.schema.locks import HeldDataset, ReleasedDataset, ReleasedJob, Wiring
from penstock.schema.lots import Held


def write_held(options: Options, held: Wiring | HeldDataset, why: str) -> None:
    """Report the hold of a job or a dataset."""
    options.write_line(held, f"{_thing(held)} is held")
    if held.held is not None and held.held.why != why and not options.json:
        write_line(earlier_hold(held.held))


def earlier_hold(held: Held) -> str:
    """Describe the hold that a thing had before; one release ends both."""
    since = show_time(held.since)
    return f"it was held before, by {held.who} since {since}: {held.why}; one release ends both"


def write_released(options: Options, released: ReleasedJob | ReleasedDataset) -> None:
    """Report a release, and the holds that still stop the job or dataset."""
    state = "is released, but still stopped" if released.stopped_by else "is released"
    options.write_line(released, f"{_thing(released)} {state}")
    if options.json:
        return
    for hold in released.stopped_by:
        thing = f"{'dataset' if hold.kind == 'DATASET' else 'job'} {hold.namespace}/{hold.name}"
        command = f"; release it: {hold.command}" if hold.command else ""
        write_line(f"{thing} is held by {hold.who}: {hold.why}{command}")


def _thing(found: Wiring | HeldDataset | ReleasedJob | ReleasedDataset) -> str:
    if isinstance(found, Wiring):
        return f"job {found.namespace}/{found.job}"
    return f"dataset {found.namespace}/{found.name}"
