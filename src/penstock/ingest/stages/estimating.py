"""Estimating: how much space will the job need?

Needs: the manifest, if there is one. Does: asks each source for the size of what the manifest does
not give. Never fails: a size that cannot be had makes `space_needed` 0, and the job waits longer.
"""

from concurrent.futures import ThreadPoolExecutor

from penstock.errors import Away, PenstockError
from penstock.ingest.moves import move_job, size_penalty
from penstock.ingest.receiving.fetching import Stopped, Wanted, size_of
from penstock.ingest.receiving.places import Places
from penstock.ingest.stages.payload import wanted_files
from penstock.ingest.values import IngestJob, PayloadType
from penstock.ingest.workshop import PAYLOAD_SCHEME, Later, Workshop
from penstock.states import IngestState

_ASKED_AT_ONCE = 8
_UNPACKED = 2  # a container is here twice: packed and unpacked


def work(shop: Workshop, job: IngestJob) -> IngestJob:
    """Add up what is known."""
    try:
        size = _size(shop, job)
    except Stopped as stopped:
        raise Later(str(stopped)) from None
    except Away:
        raise
    except PenstockError:
        size = 0
    return move_job(
        job,
        IngestState.PROVISIONING,
        shop.clock(),
        space_needed=size,
        priority=job.priority + size_penalty(size),
    )


def _size(shop: Workshop, job: IngestJob) -> int:
    collection = shop.profile(job)
    wanted = wanted_files(shop, job, collection)
    places = Places(collection.places)

    known = [file.size for file in wanted if file.size is not None]
    unknown = [file for file in wanted if file.size is None]
    client = shop.client(collection)

    def ask(file: Wanted) -> int | None:
        if file.url.startswith(f"{PAYLOAD_SCHEME}:"):
            return shop.uploaded_size(file.url)
        return size_of(client, file, places)

    if len(unknown) > 1:
        with ThreadPoolExecutor(_ASKED_AT_ONCE, "estimate") as pool:
            asked = list(pool.map(ask, unknown))
    else:
        asked = [ask(file) for file in unknown]
    if None in asked:
        return 0
    total = sum(known) + sum(size for size in asked if size is not None)
    return total * (_UNPACKED if job.configuration.payload_type is PayloadType.CONTAINER else 1)
