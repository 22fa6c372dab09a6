"""Collections: what batches are submitted to, made, changed and stopped."""

from collections.abc import Sequence

import msgspec

from penstock.access.keys import Key, Role
from penstock.catalog.shapes import Shape
from penstock.errors import Forbidden, Invalid, NotFound
from penstock.ingest.collections import MASK, Collection, PutCollection
from penstock.ingest.models import IngestHoldKind
from penstock.objects.keys import local_folder
from penstock.server.ingest_shapes import ShownCollection, shown_collection
from penstock.server.requests import IngestRequest
from penstock.server.responses import NOTHING, Empty
from penstock.server.routes.lots import WhyBody
from penstock.server.routing import BASE, Reach, Route

_TEXT_LENGTH_MAX = 10_000


class Collections(Shape, frozen=True):
    """The collections, by name."""

    collections: Sequence[ShownCollection]


def list_collections(visit: IngestRequest) -> Collections:
    """List collections by name."""
    holds = visit.held_collections()
    return Collections([shown_collection(c, holds.get(c.name)) for c in visit.collections()])


def get_collection(visit: IngestRequest, collection: str) -> ShownCollection:
    """Show a collection."""
    return _shown(visit, visit.collection(collection))


def put_collection(visit: IngestRequest, collection: str, body: Collection) -> ShownCollection:
    """Make a collection, or give it another profile; what is left out has its default.

    A secret that is sent back covered stays as it is. Places that are not public and a storage of
    its own are set with a key that is for every namespace.
    """
    if body.name not in ("", collection):
        raise Invalid(f"the body names collection {body.name[:100]!r}; leave the name out")
    wanted = msgspec.structs.replace(body, name=collection)
    visit.key.require_namespace(wanted.namespace)
    try:
        before = visit.collection(collection)
    except NotFound:
        before = None
    _check_texts(visit, wanted)
    visit.require_dataset(wanted.namespace, wanted.dataset)
    _check_reach(visit.key, before, wanted)
    if before is None and wanted.callback_secret == MASK:
        raise Invalid("the callback's secret is covered, and there is none yet; give a real one")
    if wanted.callback_secret not in (None, MASK):
        sealed = visit.context.outbound.secrets.seal(wanted.callback_secret)
        wanted = msgspec.structs.replace(wanted, callback_secret=sealed)
    visit.write(PutCollection(visit.key.name, wanted))
    return _shown(visit, visit.collection(collection))


def delete_collection(visit: IngestRequest, collection: str) -> Empty:
    """Forget a collection that has no open batch; what it stored stays."""
    visit.collection(collection)
    visit.desk.delete_collection(visit.act(""), collection)
    return NOTHING


def hold_collection(visit: IngestRequest, collection: str, body: WhyBody) -> ShownCollection:
    """Stop a collection: batches and jobs of it that have not begun are held."""
    found = visit.collection(collection)
    visit.desk.hold(visit.act(body.why), IngestHoldKind.COLLECTION, collection)
    return _shown(visit, found)


def release_collection(visit: IngestRequest, collection: str, body: WhyBody) -> ShownCollection:
    """Let a collection go on; what it held stays held until that is released."""
    found = visit.collection(collection)
    visit.desk.release(visit.act(body.why), IngestHoldKind.COLLECTION, collection)
    return _shown(visit, found)


def _shown(visit: IngestRequest, collection: Collection) -> ShownCollection:
    return shown_collection(collection, visit.held_collections().get(collection.name))


def _check_texts(visit: IngestRequest, wanted: Collection) -> None:
    visit.check_names(namespace=wanted.namespace, dataset=wanted.dataset)
    visit.check_texts(owner=wanted.owner or None, storage=wanted.storage)
    if len(msgspec.json.encode(wanted)) > _TEXT_LENGTH_MAX:
        raise Invalid(
            f"the profile of collection {wanted.name} has more than {_TEXT_LENGTH_MAX} bytes; "
            "write less, and give a prefix instead of many places"
        )
    folder = local_folder(wanted.storage) if wanted.storage is not None else None
    if folder is not None and not folder.is_absolute():
        raise Invalid(
            f"collection {wanted.name} cannot be stored at {wanted.storage!r}, which is another "
            "folder for each process; name a whole path"
        )


def _check_reach(key: Key, before: Collection | None, wanted: Collection) -> None:
    """Whoever is for one namespace must not open files and networks of the server to it."""
    if key.namespace is None:
        return
    places = before.places if before else ()
    storage = before.storage if before else None
    if not set(wanted.places) <= set(places) or wanted.storage != storage:
        raise Forbidden(
            f"key {key.name!r} is only for namespace {key.namespace!r}: the places and the storage "
            "of a collection are set with a key for every namespace"
        )


_COLLECTIONS = f"{BASE}/ingest/collections"
_COLLECTION = f"{_COLLECTIONS}/{{collection}}"

ROUTES = (
    Route("GET", _COLLECTIONS, list_collections, Reach.OWN),
    Route("GET", _COLLECTION, get_collection, Reach.OWN),
    Route("PUT", _COLLECTION, put_collection, Reach.OWN, Role.ADMIN),
    Route("DELETE", _COLLECTION, delete_collection, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_COLLECTION}/hold", hold_collection, Reach.OWN, Role.ADMIN),
    Route("POST", f"{_COLLECTION}/release", release_collection, Reach.OWN, Role.ADMIN),
)
