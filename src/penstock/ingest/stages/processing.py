"""Processing: identify the object, describe it, store it.

Needs: the files in the working folder (they are fetched again if they are gone). Does: reads the
depositor's `mrt-erc.txt` and, for an update, the description of the version before; looks up the
local id, mints an ARK if there is none and writes it down at once, writes the ERC and Dublin Core
files and the storage manifest, stores a new version of the object. Fails when a local id belongs to
another ARK, when no ARK can be minted, when a file is not what it was when it came (a resume
fetches it again), when a file that an update takes over is missing or damaged in the store, or when
the store refuses.
"""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

from msgspec.structs import replace

from penstock.clock import SECOND
from penstock.errors import Conflict, Invalid, NotFound, PenstockError
from penstock.ingest.archive.arks import ark_of
from penstock.ingest.archive.metadata import (
    ERC_BYTES_MAX,
    ERC_FILE,
    NOTHING,
    Description,
    Erc,
    dublin_core,
    erc,
    read_erc,
    stored_erc,
)
from penstock.ingest.archive.ocfl.inventory import NewFile, Spoiled, sha512
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.ingest.archive.register import Identified, Identify, Offer, TakeOver, WriterRow
from penstock.ingest.collections import Collection, InheritedPolicy, Minting, all_collections
from penstock.ingest.context import PRODUCER, IngestContext, Postponed, postpone_if_away
from penstock.ingest.deletion import give_up_if_gone, job_of
from penstock.ingest.intake import checkm
from penstock.ingest.intake.checkm import ManifestKind
from penstock.ingest.intake.fetching import ALWAYS, Stopped
from penstock.ingest.intake.payload import (
    SYSTEM,
    File,
    fetch_files,
    files_at_hand,
    folder_of,
    write_whole,
)
from penstock.ingest.models import (
    ErcPart,
    Identifiers,
    IngestJob,
    JobChange,
    PayloadType,
    SubmissionMode,
)
from penstock.ingest.transitions import move_job
from penstock.states import IngestState

log = logging.getLogger(__name__)

# In a bag the depositor's files are in this folder.
_ERC_NAMES = (ERC_FILE, f"data/{ERC_FILE}")
_AWAY_SECONDS = 60  # until a storage that did not answer is asked again
_MINTS_MAX = 20  # at EZID for one object; our own minter passes over as many as are stored


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Make a version of the object."""
    collection = context.collections.of_job(job)
    try:
        files = files_at_hand(job) or fetch_files(context, job, collection)
    except Stopped as stopped:
        raise Postponed(str(stopped)) from None
    erc_of_depositor = _deposited_erc(job, files)
    job, ark = _identified(context, job, collection, erc_of_depositor)
    depository = context.storage.depository(collection)
    is_update = job.configuration.submission_mode is SubmissionMode.UPDATE
    if is_update:
        depository.settle(ark)
        description = _describe(job, erc_of_depositor, stored_erc(depository, ark))
        earlier = _earlier_files(depository, ark)
    else:
        description = _describe(job, erc_of_depositor)
        earlier = []
    described = _described(job, ark, description, files, earlier)
    folder = folder_of(job, PRODUCER)
    deposited = [
        NewFile(f"{PRODUCER}/{file.name}", folder / file.name, file.sha512, file.size)
        for file in files
    ]
    configuration = job.configuration
    try:
        depository.store(
            ark,
            configuration.key,
            [*deposited, *described],
            update=is_update,
            who=configuration.submitter,
            message=f"{configuration.batch_id} {job.id}",
            now=context.runtime.clock(),
            by_digest=collection.inherited is InheritedPolicy.DIGEST,
        )
    except (PenstockError, OSError) as error:
        if isinstance(error, Spoiled):
            error.path.unlink(missing_ok=True)  # or a resume would take it for good again
        give_up_if_gone(context, job, ark)
        raise
    return move_job(job, IngestState.RECORDING, context.runtime.clock())


def _identified(
    context: IngestContext, job: IngestJob, collection: Collection, deposited: Erc
) -> tuple[IngestJob, str]:
    """The ARK, written into the job before anything is stored under it."""
    wanted = _identifiers_of(job, deposited)
    identified = _identify(context, job, collection, wanted)
    taken: set[str] = set()  # what EZID has minted although something is stored under it
    while identified.ark is None:
        offer = identified.offer or Offer(
            context.outbound.ezid(collection).mint(_describe(job, deposited))
        )
        may_take = _is_free(context, job, collection, offer.ark)
        if not may_take and context.runtime.is_stopping():
            raise Postponed("this worker is stopping")
        if not may_take and identified.offer is None:
            if offer.ark in taken or len(taken) == _MINTS_MAX:
                raise Conflict(
                    f"EZID mints ARKs that are in use, the last was {offer.ark} for shoulder "
                    f"{collection.shoulder}; have its minter set behind them, or give the "
                    "collection another shoulder, and resume the job"
                )
            taken.add(offer.ark)
        identified = _identify(context, job, collection, wanted, offer if may_take else None)
    ark, writer = identified.ark, identified.writer
    assert writer is not None, "an object has an ARK, and somebody who writes it"
    if job.identifiers != (named := Identifiers(ark, wanted.local_id)):
        job = _noted(context, job, named)
    _wait_for_turn(context, job, writer)
    return job, ark


def _identify(
    context: IngestContext,
    job: IngestJob,
    collection: Collection,
    wanted: Identifiers,
    taken_up: Offer | None = None,
) -> Identified:
    local = collection.minting is Minting.LOCAL
    return context.write(
        Identify(
            job.configuration.key,
            job.id,
            collection.namespace,
            collection.kept_in,
            collection.owner_name,
            wanted.local_id,
            wanted.primary,
            collection.shoulder,
            (lambda number: ark_of(collection.shoulder, number)) if local else None,
            taken_up,
        )
    )


def _noted(context: IngestContext, job: IngestJob, identifiers: Identifiers) -> IngestJob:
    """The job with its ARK, as the store has it from now on."""
    change = JobChange(job, replace(job, identifiers=identifiers), keep_lock=True)
    [outcome] = postpone_if_away(lambda: context.store.change_jobs([change]))
    if isinstance(outcome, PenstockError):
        raise Postponed(str(outcome))
    assert outcome is not None, "the change deletes nothing"
    return outcome


def _wait_for_turn(context: IngestContext, job: IngestJob, writer: WriterRow) -> None:
    """Go on only if no other job is storing a version of the same object."""
    key = job.configuration.key
    while writer.key != key:
        other = _job_of(context, writer)
        if other is None:
            context.storage.depository(context.collections.of_job(job)).give_up(
                writer.ark, writer.key
            )
        elif other.status is IngestState.PROCESSING:
            raise Postponed(f"{writer.ark} is being stored by ingest job {writer.job_id}")
        writer = context.write(TakeOver(writer.ark, key, job.id, instead_of=writer.key))


def _job_of(context: IngestContext, writer: WriterRow) -> IngestJob | None:
    return postpone_if_away(lambda: job_of(context, writer))


def _earlier_files(depository: Depository, ark: str) -> list[File]:
    """List the deposited files of the object's newest version, which an update takes over."""
    try:
        stored = depository.described_files(ark)
    except NotFound:
        return []
    folder = f"{PRODUCER}/"
    return [
        File(file.name.removeprefix(folder), file.size or 0, file.sha512, file.modified, file.mime)
        for file in stored
        if file.name.startswith(folder)
    ]


def _described(
    job: IngestJob,
    ark: str,
    description: Description,
    files: Sequence[File],
    earlier: Sequence[File],
) -> list[NewFile]:
    """Write the files that we add: the description, and the manifest of all deposited files."""
    local_ids = job.identifiers.local_id
    listed = {file.name: file for file in (*earlier, *files)}
    rows = [
        checkm.Row(
            line=0,
            url=f"{ark}/{PRODUCER}/{quote(file.name)}",
            algorithm=ALWAYS,
            digest=file.sha512,
            size=file.size,
            name=file.name,
            modified=file.modified,
            mime=file.mime,
        )
        for file in listed.values()
    ]
    folder = folder_of(job, SYSTEM)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _written(folder / ERC_FILE, erc(description, ark, local_ids)),
        _written(folder / "mrt-dc.xml", dublin_core(description, ark, local_ids)),
        _written(folder / "mrt-manifest.txt", checkm.write(ManifestKind.OBJECT, rows)),
    ]


def _written(path: Path, content: bytes) -> NewFile:
    write_whole(path, content)
    return NewFile(f"{SYSTEM}/{path.name}", path, sha512(content), len(content))


def _deposited_erc(job: IngestJob, files: Sequence[File]) -> Erc:
    """Read the depositor's `mrt-erc.txt`, if the payload is one that may have one."""
    if job.configuration.payload_type is PayloadType.FILE:
        return NOTHING
    names = {file.name for file in files}
    name = next((each for each in _ERC_NAMES if each in names), None)
    if name is None:
        return NOTHING
    with (folder_of(job, PRODUCER) / name).open("rb") as file:
        return read_erc(file.read(ERC_BYTES_MAX + 1), name)


def _identifiers_of(job: IngestJob, erc: Erc) -> Identifiers:
    """The ARK and local ids of a deposit; those of the submission win."""
    told = job.identifiers
    return Identifiers(told.primary or erc.ark, told.local_id or erc.local_ids)


def _describe(job: IngestJob, deposited: Erc, earlier: Erc = NOTHING) -> Description:
    """Choose each part of the description from the first place that has it."""
    told = job.configuration
    cleared = frozenset(told.clear)

    def chosen(part: ErcPart, *values: str | None) -> str | None:
        return None if part in cleared else next(filter(None, values), None)

    places: tuple[str, ...] = ()
    if ErcPart.WHERE not in cleared and told.erc_where is None:
        places = _other_places(deposited) or _other_places(earlier)
    return Description(
        who=chosen(ErcPart.WHO, told.erc_who, deposited.who, earlier.who),
        what=chosen(ErcPart.WHAT, told.erc_what, deposited.what, earlier.what),
        when=chosen(ErcPart.WHEN, told.erc_when, deposited.when, earlier.when),
        where=chosen(ErcPart.WHERE, told.erc_where),
        places=places,
    )


def _other_places(erc: Erc) -> tuple[str, ...]:
    """Places other than the object's ARK, which is listed first in any case."""
    return tuple(place for place in erc.places if not place.lower().startswith("ark:"))


def _is_free(context: IngestContext, job: IngestJob, collection: Collection, ark: str) -> bool:
    """Whether no storage has an object under this ARK that this very deposit did not make."""
    key = job.configuration.key
    return _is_free_in(context.storage.depository(collection), ark, key) and all(
        _is_free_elsewhere(context, other, ark, key) for other in _others(context, collection)
    )


def _others(context: IngestContext, collection: Collection) -> Iterator[Collection]:
    """One collection for each other storage that has ARKs of the same shoulder."""
    with context.catalog.read() as tx:
        alike = [each for each in all_collections(tx) if each.shoulder == collection.shoulder]
    by_storage = {each.kept_in: each for each in alike if each.kept_in != collection.kept_in}
    yield from by_storage.values()


def _is_free_elsewhere(context: IngestContext, other: Collection, ark: str, key: str) -> bool:
    """The same in another collection's storage; one that is away does not stop this collection."""
    if context.storage.away_until.get(other.kept_in, 0) > context.runtime.clock():
        return True
    try:
        return _is_free_in(context.storage.depository(other), ark, key)
    except PenstockError as error:
        context.storage.away_until[other.kept_in] = context.runtime.clock() + _AWAY_SECONDS * SECOND
        log.warning("whether %s has objects of new ARKs is not known: %s", other.name, error)
        return True


def _is_free_in(depository: Depository, ark: str, key: str) -> bool:
    try:
        free = depository.is_free(ark, key)
    except Invalid as unreadable:
        log.warning("%s is passed over: %s", ark, unreadable)
        return False
    if not free:
        log.info("%s is passed over: %s has an object of it", ark, depository.url)
    return free
