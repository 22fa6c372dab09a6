"""Processing: identify the object, describe it, store it.

Needs: the files in the working folder (they are fetched again if they are gone). Does: reads the
depositor's `mrt-erc.txt` and, for an update, the description of the version before; looks up the
local id, mints an ARK if there is none and writes it down at once, writes the ERC and Dublin Core
files and the storage manifest, stores a new version of the object. Fails when a local id belongs to
another ARK, when no ARK can be minted, when a file is not what it was when it came (a resume
fetches it again), when a file that an update takes over is missing or damaged in the store, or when
the store refuses.
"""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from msgspec.structs import replace

from penstock.errors import Conflict, NotFound, PenstockError
from penstock.ingest.archive.arks import ark_of
from penstock.ingest.archive.metadata import (
    ERC_FILE,
    Description,
    Erc,
    dublin_core,
    erc,
    stored_erc,
)
from penstock.ingest.archive.ocfl.inventory import NewFile, Spoiled, sha512
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.ingest.archive.register import Identified, Identify, Offer, TakeOver, WriterRow
from penstock.ingest.context import PRODUCER, IngestContext, Later, patiently
from penstock.ingest.intake import checkm
from penstock.ingest.intake.checkm import ManifestKind
from penstock.ingest.intake.fetching import ALWAYS, Stopped
from penstock.ingest.models import Identifiers, IngestJob, JobChange
from penstock.ingest.stages.describing import deposited_erc, describe, identifiers_of
from penstock.ingest.stages.payload import (
    SYSTEM,
    File,
    fetch_files,
    files_at_hand,
    folder_of,
    write_whole,
)
from penstock.ingest.transitions import move_job
from penstock.ingest.workers.abandoned import give_up_if_gone, job_of
from penstock.ingest.workers.ark_availability import is_free
from penstock.schema.ingest import Collection, InheritedPolicy, Minting, SubmissionMode
from penstock.states import IngestState

_MINTS_MAX = 20  # at EZID for one object; our own minter passes over as many as are stored


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Make a version of the object."""
    collection = context.profile(job)
    try:
        files = files_at_hand(job) or fetch_files(context, job, collection)
    except Stopped as stopped:
        raise Later(str(stopped)) from None
    erc_of_depositor = deposited_erc(job, files)
    job, ark = _identified(context, job, collection, erc_of_depositor)
    depository = context.depository(collection)
    is_update = job.configuration.submission_mode is SubmissionMode.UPDATE
    if is_update:
        depository.settle(ark)
        description = describe(job, erc_of_depositor, stored_erc(depository, ark))
        earlier = _earlier_files(depository, ark)
    else:
        description = describe(job, erc_of_depositor)
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
            now=context.clock(),
            by_digest=collection.inherited is InheritedPolicy.DIGEST,
        )
    except (PenstockError, OSError) as error:
        if isinstance(error, Spoiled):
            error.path.unlink(missing_ok=True)  # or a resume would take it for good again
        give_up_if_gone(context, job, ark)
        raise
    return move_job(job, IngestState.RECORDING, context.clock())


def _identified(
    context: IngestContext, job: IngestJob, collection: Collection, deposited: Erc
) -> tuple[IngestJob, str]:
    """The ARK, written into the job before anything is stored under it."""
    wanted = identifiers_of(job, deposited)
    identified = _identify(context, job, collection, wanted)
    taken: set[str] = set()  # what EZID has minted although something is stored under it
    while identified.ark is None:
        offer = identified.offer or Offer(context.ezid(collection).mint(describe(job, deposited)))
        may_take = is_free(context, job, collection, offer.ark)
        if not may_take and context.stop():
            raise Later("this worker is stopping")
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
    [outcome] = patiently(lambda: context.store.change_jobs([change]))
    if isinstance(outcome, PenstockError):
        raise Later(str(outcome))
    assert outcome is not None, "the change deletes nothing"
    return outcome


def _wait_for_turn(context: IngestContext, job: IngestJob, writer: WriterRow) -> None:
    """Go on only if no other job is storing a version of the same object."""
    key = job.configuration.key
    while writer.key != key:
        other = _job_of(context, writer)
        if other is None:
            context.depository(context.profile(job)).give_up(writer.ark, writer.key)
        elif other.status is IngestState.PROCESSING:
            raise Later(f"{writer.ark} is being stored by ingest job {writer.job_id}")
        writer = context.write(TakeOver(writer.ark, key, job.id, instead_of=writer.key))


def _job_of(context: IngestContext, writer: WriterRow) -> IngestJob | None:
    return patiently(lambda: job_of(context, writer))


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
