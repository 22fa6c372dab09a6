"""What `penstock lots gaps` says."""

from penstock.cli.printing import note, write_line
from penstock.client.arc_documents import Gaps


def write_gaps(found: Gaps) -> None:
    """The ranges, each with its cause and the root of it."""
    totals = "".join(f", {number:,} {kind}" for kind, number in found.totals.items() if number)
    write_line(
        f"{found.namespace}/{found.dataset}, {found.count:,} lots of {found.interval} from "
        f"{found.first} to {found.last}: {found.there:,} there{totals}"
    )
    for gap in found.ranges:
        span = gap.first if gap.count == 1 else f"{gap.first} to {gap.last} ({gap.count:,} lots)"
        write_line(f"{span}: {gap.kind}")
        if gap.cause is None:
            continue
        write_line(f"  {gap.cause.sentence}")
        for root in gap.cause.roots:
            told = "" if root.sentence in gap.cause.sentence else f": {root.sentence}"
            write_line(f"  root: lot {root.lot} of {root.namespace}/{root.dataset}{told}")
        if not gap.is_alike:
            write_line("  Lots after the first may have other causes: ask for fewer to be told.")
    if found.is_cut:
        note(f"the first {len(found.ranges):,} ranges are shown; --from goes on after them")
