"""Handing in: what a depositor asks for, and the one write that makes it a batch."""

from urllib.parse import unquote, urlsplit

from msgspec import Struct

from penstock import ids
from penstock.errors import Invalid, NotFound
from penstock.ingest.arks import read_ark
from penstock.ingest.collections import Collection, find_collection
from penstock.ingest.following import batch_submitted
from penstock.ingest.receiving.names import safe_name
from penstock.ingest.receiving.places import Places, check_url
from penstock.ingest.receiving.uploads import BindUpload
from penstock.ingest.store import Submitted
from penstock.ingest.values import PayloadType, Submission, SubmissionMode
from penstock.ingest.workshop import PAYLOAD_SCHEME, Workshop, upload_key
from penstock.objects import Objects

_CONTAINERS = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


class Deposit(Struct, frozen=True, kw_only=True):
    """What a depositor asks for; what is left out is found out."""

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
    key: str | None = None


def submit(shop: Workshop, deposit: Deposit) -> Submitted:
    """Take a deposit: one write, and the batch it became."""
    with shop.catalog.read() as tx:
        collection = find_collection(tx, deposit.collection)
    uid = ids.new_id()
    _check_url(shop, deposit, collection, uid)
    name = deposit.name or _last_segment(deposit.url)
    if reason := safe_name(name):
        raise Invalid(f"the name {name[:200]!r} {reason}; give another")
    began = shop.clock()
    submitted = shop.store.submit(
        Submission(
            profile_name=collection.name,
            submitter=deposit.submitter,
            payload_url=deposit.url,
            type=deposit.type or guessed_type(name),
            submission_mode=deposit.mode,
            erc_who=deposit.who,
            erc_what=deposit.what,
            erc_when=deposit.when,
            erc_where=deposit.where,
            payload_name=name,
            digest_algorithm=deposit.algorithm,
            digest=deposit.digest,
            size=deposit.size,
            primary_id=None if deposit.primary_id is None else read_ark(deposit.primary_id),
            local_id=deposit.local_id,
            uid=uid,
            key=deposit.key,
        )
    )
    if submitted.is_new:
        batch_submitted(shop, submitted.batch, began)
    return submitted


def _check_url(shop: Workshop, deposit: Deposit, collection: Collection, uid: str) -> None:
    url = deposit.url
    if not url.startswith(f"{PAYLOAD_SCHEME}:"):
        check_url(url, Places(collection.places))
        return
    if not Objects.open(shop.settings.objects).exists(upload_key(url)):
        raise NotFound(f"there is no uploaded payload {url!r}; upload it first")
    # The same submission again, by its key, is the same batch and may have the same upload.
    holder = f"{collection.name}/{deposit.key}" if deposit.key is not None else uid
    shop.catalog.submit(BindUpload(url, holder)).result()


def guessed_type(name: str) -> PayloadType:
    """What a payload is by its name; a manifest says itself of which kind it is."""
    lowered = name.lower()
    if lowered.endswith(_CONTAINERS):
        return PayloadType.CONTAINER
    return PayloadType.MANIFEST if lowered.endswith(".checkm") else PayloadType.FILE


def _last_segment(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2]) or "payload"
