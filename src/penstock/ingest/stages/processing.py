"""Processing: identify the object, describe it, store it.

Needs: the files in the working folder; missing files are fetched again. Does: reads the depositor's
`mrt-erc.txt` and, for an update, the description of the version before; looks up the local id;
mints an ARK if there is none and stores it in the job at once; writes the ERC and Dublin Core files
and the storage manifest; stores a new version of the object. Fails if a local id belongs to another
ARK, if no ARK can be minted, if a file changed since it was fetched (a resume fetches it again), if
an inherited file is missing or damaged in the store, or if the store refuses the version.
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
    EMPTY_ERC,
    ERC_BYTES_MAX,
    ERC_FILE,
    Description,
    Erc,
    dublin_core,
    erc,
    read_erc,
    stored_erc,
)
from penstock.ingest.archive.ocfl.inventory import FileChanged, NewFile, sha512
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.ingest.archive.register import Identified, Identify, Offer, TakeOver, WriterRow
from penstock.ingest.collections import all_collections
from penstock.ingest.context import PRODUCER, IngestContext, Postponed, postpone_if_away
from penstock.ingest.deletion import abandon_if_deleted, writer_job
from penstock.ingest.intake import checkm
from penstock.ingest.intake.checkm import ManifestKind
from penstock.ingest.intake.fetching import ALWAYS, FetchStopped
from penstock.ingest.intake.payload import (
    SYSTEM,
    PayloadFile,
    fetch_files,
    fetched_files,
    job_folder,
    replace_file,
)
from penstock.ingest.models import Identifiers, IngestJob, JobChange
from penstock.ingest.transitions import move_job
from penstock.schema.ingest import (
    Collection,
    ErcPart,
    InheritedPolicy,
    Minting,
    PayloadType,
    SubmissionMode,
)
from penstock.states import IngestState

log = logging.getLogger(__name__)

# A bag has the depositor's files in `data`.
_ERC_NAMES = (ERC_FILE, f"data/{ERC_FILE}")
_AWAY_SECONDS = 60  # before a storage that did not answer is tried again
_MINTS_MAX = 20  # at EZID for one object; the local minter skips any number of ARKs


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Identify, describe and store a version of the object."""
    collection = context.collections.of_job(job)
    try:
        files = fetched_files(job) or fetch_files(context, job, collection)
    except FetchStopped as stopped:
        raise Postponed(str(stopped)) from None
    erc_of_depositor = _deposited_erc(job, files)
    job, ark = _identify_job(context, job, collection, erc_of_depositor)
    depository = context.storage.depository(collection)
    is_update = job.configuration.submission_mode is SubmissionMode.UPDATE
    if is_update:
        depository.finish_version(ark)
        description = _describe(job, erc_of_depositor, stored_erc(depository, ark))
        earlier = _earlier_files(depository, ark)
    else:
        description = _describe(job, erc_of_depositor)
        earlier = []
    described = _write_metadata(job, ark, description, files, earlier)
    folder = job_folder(job, PRODUCER)
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
        if isinstance(error, FileChanged):
            error.path.unlink(missing_ok=True)  # or a resume would use it again
        abandon_if_deleted(context, job, ark)
        raise
    return move_job(job, IngestState.RECORDING, context.runtime.clock())


def _identify_job(
    context: IngestContext, job: IngestJob, collection: Collection, deposited: Erc
) -> tuple[IngestJob, str]:
    """Find or mint the ARK, and store it in the job before anything is stored under it."""
    wanted = _identifiers_of(job, deposited)
    identified = _identify(context, job, collection, wanted)
    used_arks: set[str] = set()  # ARKs from EZID that are in use already
    while identified.ark is None:
        offer = identified.offer or Offer(
            context.outbound.ezid(collection).mint(_describe(job, deposited))
        )
        may_take = _is_free(context, job, collection, offer.ark)
        if not may_take and context.runtime.is_stopping():
            raise Postponed("this worker is stopping")
        if not may_take and identified.offer is None:
            if offer.ark in used_arks or len(used_arks) == _MINTS_MAX:
                raise Conflict(
                    f"EZID mints ARKs that are in use, the last was {offer.ark} for shoulder "
                    f"{collection.shoulder}; have its minter set behind them, or give the "
                    "collection another shoulder, and resume the job"
                )
            used_arks.add(offer.ark)
        identified = _identify(context, job, collection, wanted, offer if may_take else None)
    ark, writer = identified.ark, identified.writer
    assert writer is not None, "an identified object has a writer"
    if job.identifiers != (identifiers := Identifiers(ark, wanted.local_id)):
        job = _store_identifiers(context, job, identifiers)
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
            collection.storage_url,
            collection.owner_name,
            wanted.local_id,
            wanted.primary,
            collection.shoulder,
            (lambda number: ark_of(collection.shoulder, number)) if local else None,
            taken_up,
        )
    )


def _store_identifiers(
    context: IngestContext, job: IngestJob, identifiers: Identifiers
) -> IngestJob:
    """Store the identifiers in the job; keep its lock."""
    change = JobChange(job, replace(job, identifiers=identifiers), keep_lock=True)
    [outcome] = postpone_if_away(lambda: context.store.change_jobs([change]))
    if isinstance(outcome, PenstockError):
        raise Postponed(str(outcome))
    assert outcome is not None, "the change deletes nothing"
    return outcome


def _wait_for_turn(context: IngestContext, job: IngestJob, writer: WriterRow) -> None:
    """Become the only writer of the object, or postpone while another job stores a version."""
    key = job.configuration.key
    while writer.key != key:
        other = _job_of(context, writer)
        if other is None:
            context.storage.depository(context.collections.of_job(job)).abandon(
                writer.ark, writer.key
            )
        elif other.status is IngestState.PROCESSING:
            raise Postponed(f"{writer.ark} is being stored by ingest job {writer.job_id}")
        writer = context.write(TakeOver(writer.ark, key, job.id, instead_of=writer.key))


def _job_of(context: IngestContext, writer: WriterRow) -> IngestJob | None:
    return postpone_if_away(lambda: writer_job(context, writer))


def _earlier_files(depository: Depository, ark: str) -> list[PayloadFile]:
    """List the deposited files of the object's newest version, which an update inherits."""
    try:
        stored = depository.described_files(ark)
    except NotFound:
        return []
    folder = f"{PRODUCER}/"
    return [
        PayloadFile(
            file.name.removeprefix(folder), file.size or 0, file.sha512, file.modified, file.mime
        )
        for file in stored
        if file.name.startswith(folder)
    ]


def _write_metadata(
    job: IngestJob,
    ark: str,
    description: Description,
    files: Sequence[PayloadFile],
    earlier: Sequence[PayloadFile],
) -> list[NewFile]:
    """Write the description, and the manifest of all deposited files."""
    local_ids = job.identifiers.local_id
    listed = {file.name: file for file in (*earlier, *files)}
    rows = [
        checkm.CheckmRow(
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
    folder = job_folder(job, SYSTEM)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _write_metadata_file(folder / ERC_FILE, erc(description, ark, local_ids)),
        _write_metadata_file(folder / "mrt-dc.xml", dublin_core(description, ark, local_ids)),
        _write_metadata_file(folder / "mrt-manifest.txt", checkm.write(ManifestKind.OBJECT, rows)),
    ]


def _write_metadata_file(path: Path, content: bytes) -> NewFile:
    replace_file(path, content)
    return NewFile(f"{SYSTEM}/{path.name}", path, sha512(content), len(content))


def _deposited_erc(job: IngestJob, files: Sequence[PayloadFile]) -> Erc:
    """Read the depositor's `mrt-erc.txt`, if the payload has one."""
    if job.configuration.payload_type is PayloadType.FILE:
        return EMPTY_ERC
    names = {file.name for file in files}
    name = next((each for each in _ERC_NAMES if each in names), None)
    if name is None:
        return EMPTY_ERC
    with (job_folder(job, PRODUCER) / name).open("rb") as file:
        return read_erc(file.read(ERC_BYTES_MAX + 1), name)


def _identifiers_of(job: IngestJob, erc: Erc) -> Identifiers:
    """Choose the ARK and local ids of a deposit; those of the submission come first."""
    identifiers = job.identifiers
    return Identifiers(identifiers.primary or erc.ark, identifiers.local_id or erc.local_ids)


def _describe(job: IngestJob, deposited: Erc, earlier: Erc = EMPTY_ERC) -> Description:
    """Choose each part of the description from the first source that has it.

    The sources are the submission, the depositor's own `mrt-erc.txt` and, in an update, the version
    before. A part that the submission clears is empty.
    """
    configuration = job.configuration
    cleared = frozenset(configuration.clear)

    def choose(part: ErcPart, *values: str | None) -> str | None:
        return None if part in cleared else next(filter(None, values), None)

    places: tuple[str, ...] = ()
    if ErcPart.WHERE not in cleared and configuration.erc_where is None:
        places = _other_places(deposited) or _other_places(earlier)
    return Description(
        who=choose(ErcPart.WHO, configuration.erc_who, deposited.who, earlier.who),
        what=choose(ErcPart.WHAT, configuration.erc_what, deposited.what, earlier.what),
        when=choose(ErcPart.WHEN, configuration.erc_when, deposited.when, earlier.when),
        where=choose(ErcPart.WHERE, configuration.erc_where),
        places=places,
    )


def _other_places(erc: Erc) -> tuple[str, ...]:
    """List the places other than ARKs: the object's ARK is always listed first."""
    return tuple(place for place in erc.places if not place.lower().startswith("ark:"))


def _is_free(context: IngestContext, job: IngestJob, collection: Collection, ark: str) -> bool:
    """Whether no storage has an object of another deposit under this ARK.

    A database that was restored from a backup counts from an older number, but the objects are
    still in the storage. Their ARKs are skipped.
    """
    key = job.configuration.key
    return _is_free_in(context.storage.depository(collection), ark, key) and all(
        _is_free_elsewhere(context, other, ark, key) for other in _others(context, collection)
    )


def _others(context: IngestContext, collection: Collection) -> Iterator[Collection]:
    """List one collection for each other storage that has ARKs of the same shoulder."""
    with context.catalog.read() as tx:
        alike = [each for each in all_collections(tx) if each.shoulder == collection.shoulder]
    by_storage = {
        each.storage_url: each for each in alike if each.storage_url != collection.storage_url
    }
    yield from by_storage.values()


def _is_free_elsewhere(context: IngestContext, other: Collection, ark: str, key: str) -> bool:
    """Check another collection's storage; a storage that is away does not stop this collection."""
    if context.storage.away_until.get(other.storage_url, 0) > context.runtime.clock():
        return True
    try:
        return _is_free_in(context.storage.depository(other), ark, key)
    except PenstockError as error:
        context.storage.away_until[other.storage_url] = (
            context.runtime.clock() + _AWAY_SECONDS * SECOND
        )
        log.warning("cannot check the storage of %s for a new ARK: %s", other.name, error)
        return True


def _is_free_in(depository: Depository, ark: str, key: str) -> bool:
    try:
        free = depository.is_free(ark, key)
    except Invalid as unreadable:
        log.warning("skipped ARK %s: %s", ark, unreadable)
        return False
    if not free:
        log.info("skipped ARK %s: %s has an object of it", ark, depository.url)
    return free
