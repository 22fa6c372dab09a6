"""Submission of deposits: checks of the request, and the write that makes a batch."""

from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from penstock import ids
from penstock.errors import Conflict, Invalid, NotFound, PenstockError, Unavailable
from penstock.ingest.archive.arks import read_ark, read_local_ids
from penstock.ingest.collections import find_collection
from penstock.ingest.context import PAYLOAD_SCHEME, IngestContext, upload_key
from penstock.ingest.intake.places import Places, check_url
from penstock.ingest.intake.uploads import BindUpload, FreeUpload, SpendUpload
from penstock.ingest.intake.validation import name_fault
from penstock.ingest.models import Batch, Submission
from penstock.ingest.queue.port import Submitted
from penstock.ingest.telemetry import batch_submitted
from penstock.schema.ingest import Collection, ErcPart, PayloadType, SubmissionMode

# The fields that a second submission under the same key must repeat, besides the payload.
_COMPARED = (
    *("submission_mode", "primary_id", "local_id"),
    *("erc_who", "erc_what", "erc_when", "erc_where", "clear"),
)
_CONTAINERS = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


class DepositRequest(Struct, frozen=True, kw_only=True):
    """A depositor's request; omitted fields are inferred from the payload."""

    collection: str
    url: str
    submitter: str
    type: PayloadType | None = None
    mode: SubmissionMode = SubmissionMode.ADD
    name: str | None = None
    algorithm: str | None = None
    digest: str | None = None
    size: int | None = None
    primary_id: str | None = None
    local_id: str | None = None
    who: str | None = None
    what: str | None = None
    when: str | None = None
    where: str | None = None
    clear: tuple[ErcPart, ...] = ()
    key: str | None = None


def submit(context: IngestContext, deposit: DepositRequest) -> Submitted:
    """Submit a deposit; return its batch."""
    with context.catalog.read() as tx:
        collection = find_collection(tx, deposit.collection)
    is_upload = deposit.url.startswith(f"{PAYLOAD_SCHEME}:")
    if not is_upload:
        check_url(deposit.url, Places(collection.places))
    submission = _submission(deposit, collection)
    began = context.runtime.clock()
    submitted = (
        _submit_upload(context, submission) if is_upload else context.store.submit(submission)
    )
    if submitted.is_new:
        batch_submitted(context.collections, submitted.batch, began)
    else:
        _check_same(submission, submitted.batch)
    return submitted


def _check_same(again: Submission, batch: Batch) -> None:
    """Raise Conflict if the batch under this key was submitted with other fields."""
    first = batch.submission
    names_with_value = (name for name in _COMPARED if getattr(again, name))
    different = [name for name in names_with_value if getattr(first, name) != getattr(again, name)]
    if not _is_same_payload(first, again):
        different.insert(0, "payload")
    if different:
        names = ", ".join(name.removeprefix("erc_") for name in different)
        raise Conflict(
            f"key {again.key!r} of collection {again.profile_name} is that of batch {batch.id}, "
            f"which was submitted with another {names}; use another key, or submit the same again"
        )


def _is_same_payload(first: Submission, again: Submission) -> bool:
    """Whether two payloads are the same: by their digests if both have one, else by their URLs.

    A repeated upload has another URL.
    """
    digests = [(each.digest_algorithm, each.digest) for each in (first, again)]
    are_uploads = all(each.payload_url.startswith(f"{PAYLOAD_SCHEME}:") for each in (first, again))
    if all(digest for _, digest in digests) and first.digest_algorithm == again.digest_algorithm:
        return digests[0] == digests[1] and (are_uploads or first.payload_url == again.payload_url)
    return first.payload_url == again.payload_url


def _submission(deposit: DepositRequest, collection: Collection) -> Submission:
    name = deposit.name or _last_segment(deposit.url)
    if reason := name_fault(name):
        raise Invalid(f"the name {name[:200]!r} {reason}; give another")
    read_local_ids(deposit.local_id)
    return Submission(
        profile_name=collection.name,
        submitter=deposit.submitter,
        payload_url=deposit.url,
        type=deposit.type or guess_type(name),
        submission_mode=deposit.mode,
        erc_who=deposit.who,
        erc_what=deposit.what,
        erc_when=deposit.when,
        erc_where=deposit.where,
        clear=_cleared(deposit),
        payload_name=name,
        digest_algorithm=deposit.algorithm,
        digest=deposit.digest,
        size=deposit.size,
        primary_id=None if deposit.primary_id is None else read_ark(deposit.primary_id),
        local_id=deposit.local_id,
        uid=ids.new_id(),
        key=deposit.key,
    )


def _cleared(deposit: DepositRequest) -> tuple[ErcPart, ...]:
    """Return the parts of the description to clear; they must not have a value too."""
    values = {
        ErcPart.WHO: deposit.who,
        ErcPart.WHAT: deposit.what,
        ErcPart.WHEN: deposit.when,
        ErcPart.WHERE: deposit.where,
    }
    for part in deposit.clear:
        if values[part] is not None:
            raise Invalid(f"{part} is both given and cleared; leave one of the two out")
    return tuple(dict.fromkeys(deposit.clear))


def _submit_upload(context: IngestContext, submission: Submission) -> Submitted:
    """Make a batch of an upload and spend the upload.

    Without a depositor's key the upload's URL is the key. So a submission whose result is unknown
    can be repeated, and makes one batch.
    """
    url, has_key = submission.payload_url, submission.key is not None
    if not context.storage.objects.exists(upload_key(url)):
        raise NotFound(f"there is no uploaded payload {url!r}; upload it first")
    keyed = submission if has_key else replace(submission, key=url)
    holder = f"{keyed.profile_name}/{keyed.key}"
    context.catalog.submit(BindUpload(url, holder, has_key)).result()
    try:
        submitted = context.store.submit(keyed)
    except Unavailable:
        raise  # the batch may exist
    except PenstockError:
        context.catalog.submit(FreeUpload(url, holder)).result()
        raise
    batch = submitted.batch
    is_used = batch.submission.payload_url == url  # else the key belongs to another batch
    context.catalog.submit(
        SpendUpload(url, batch.id) if is_used else FreeUpload(url, holder)
    ).result()
    return submitted


def guess_type(name: str) -> PayloadType:
    """Guess the type of a payload from its name; a manifest's profile names its exact type."""
    lowered = name.lower()
    if lowered.endswith(_CONTAINERS):
        return PayloadType.CONTAINER
    return PayloadType.MANIFEST if lowered.endswith(".checkm") else PayloadType.FILE


def _last_segment(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2]) or "payload"
