"""Estimating: find the space that the job will need.

Needs: the manifest, if there is one. Does: asks each source for the sizes that the manifest does
not have. Never fails: with an unknown size `space_needed` is 0, and the job waits longer.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from penstock.errors import Away, PenstockError
from penstock.ingest.context import PAYLOAD_SCHEME, IngestContext, Postponed
from penstock.ingest.intake.fetching import FetchStopped, FileRequest, size_of
from penstock.ingest.intake.payload import list_files
from penstock.ingest.intake.places import Places
from penstock.ingest.models import IngestJob
from penstock.ingest.transitions import move_job, size_penalty
from penstock.schema.ingest import Collection, PayloadType
from penstock.states import IngestState

_ASKED_AT_ONCE = 8
_BYTES_MAX = 1 << 50
_UNPACKED = 2  # a container needs space packed and unpacked


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Add up the sizes of the files."""
    try:
        size = _size(context, job)
    except FetchStopped as stopped:
        raise Postponed(str(stopped)) from None
    except Away:
        raise
    except PenstockError:
        size = 0
    return move_job(
        job,
        IngestState.PROVISIONING,
        context.runtime.clock(),
        space_needed=size,
        priority=job.priority + size_penalty(size),
    )


def _size(context: IngestContext, job: IngestJob) -> int:
    collection = context.collections.of_job(job)
    wanted = list_files(context, job, collection)
    is_container = job.configuration.payload_type is PayloadType.CONTAINER
    declared = [file.size for file in wanted if file.size is not None]
    sizes = _ask_sizes(context, collection, [file for file in wanted if file.size is None])
    if sizes is None:
        return 0
    total = (sum(declared) + sum(sizes)) * (_UNPACKED if is_container else 1)
    # A server may report any size, and the sizes of all jobs are added up.
    return min(total, collection.bytes_max * _UNPACKED, _BYTES_MAX)


def _ask_sizes(
    context: IngestContext, collection: Collection, files: Sequence[FileRequest]
) -> list[int] | None:
    """Ask the sources for sizes; None as soon as one is unknown.

    The rest is not asked then: a server that hangs would block this stage once for each file.
    """
    client, places = context.outbound.client(collection), Places(collection.places)
    is_unknown = threading.Event()

    def ask(file: FileRequest) -> int | None:
        if is_unknown.is_set() or context.runtime.is_stopping():
            return None
        is_upload = file.url.startswith(f"{PAYLOAD_SCHEME}:")
        size = context.storage.upload_size(file.url) if is_upload else size_of(client, file, places)
        if size is None:
            is_unknown.set()
        return size

    if len(files) > 1:
        with ThreadPoolExecutor(_ASKED_AT_ONCE, "estimate") as pool:
            sizes = list(pool.map(ask, files))
    else:
        sizes = [ask(file) for file in files]
    if context.runtime.is_stopping():
        raise Postponed("this worker is stopping")
    numbers = [size for size in sizes if size is not None]
    return numbers if len(numbers) == len(files) else None
