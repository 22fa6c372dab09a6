"""The description of an object, from the three places that may have a part of it.

The submission comes first, then the depositor's own `mrt-erc.txt` in a container or manifest, then,
in an update, the version before. A part that the submission clears is empty in any case.
"""

from collections.abc import Sequence

from penstock.ingest.archive.metadata import (
    ERC_BYTES_MAX,
    ERC_FILE,
    NOTHING,
    Description,
    Erc,
    read_erc,
)
from penstock.ingest.context import PRODUCER
from penstock.ingest.models import Identifiers, IngestJob
from penstock.ingest.stages.payload import File, folder_of
from penstock.schema.ingest import ErcPart, PayloadType

# In a bag the depositor's files are in this folder.
_ERC_NAMES = (ERC_FILE, f"data/{ERC_FILE}")


def deposited_erc(job: IngestJob, files: Sequence[File]) -> Erc:
    """Read the depositor's `mrt-erc.txt`, if the payload is one that may have one."""
    if job.configuration.payload_type is PayloadType.FILE:
        return NOTHING
    names = {file.name for file in files}
    name = next((each for each in _ERC_NAMES if each in names), None)
    if name is None:
        return NOTHING
    with (folder_of(job, PRODUCER) / name).open("rb") as file:
        return read_erc(file.read(ERC_BYTES_MAX + 1), name)


def identifiers_of(job: IngestJob, erc: Erc) -> Identifiers:
    """The ARK and local ids of a deposit; those of the submission win."""
    told = job.identifiers
    return Identifiers(told.primary or erc.ark, told.local_id or erc.local_ids)


def describe(job: IngestJob, deposited: Erc, earlier: Erc = NOTHING) -> Description:
    """Choose each part of the description from the first place that has it."""
    told = job.configuration
    cleared = frozenset(told.clear)

    def chosen(part: ErcPart, *values: str | None) -> str | None:
        return None if part in cleared else next(filter(None, values), None)

    places: tuple[str, ...] = ()
    if ErcPart.WHERE not in cleared and told.erc_where is None:
        places = _others(deposited) or _others(earlier)
    return Description(
        who=chosen(ErcPart.WHO, told.erc_who, deposited.who, earlier.who),
        what=chosen(ErcPart.WHAT, told.erc_what, deposited.what, earlier.what),
        when=chosen(ErcPart.WHEN, told.erc_when, deposited.when, earlier.when),
        where=chosen(ErcPart.WHERE, told.erc_where),
        places=places,
    )


def _others(erc: Erc) -> tuple[str, ...]:
    """Places other than the object's ARK, which is listed first in any case."""
    return tuple(place for place in erc.places if not place.lower().startswith("ark:"))
