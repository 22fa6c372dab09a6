"""Estimating: how much space will the job need?

Needs: the manifest, if there is one. Does: asks each source for the size of what the manifest does
not give. Never fails: a size that cannot be had makes `space_needed` 0, and the job waits longer.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from penstock.errors import Away, PenstockError
from penstock.ingest.collections import Collection
from penstock.ingest.context import PAYLOAD_SCHEME, IngestContext, Postponed
from penstock.ingest.intake.fetching import Stopped, Wanted, size_of
from penstock.ingest.intake.payload import wanted_files
from penstock.ingest.intake.places import Places
from penstock.ingest.models import IngestJob, PayloadType
from penstock.ingest.transitions import move_job, size_penalty
from penstock.states import IngestState

_ASKED_AT_ONCE = 8
_BYTES_MAX = 1 << 50
_UNPACKED = 2  # a container is here twice: packed and unpacked


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Add up what is known."""
    try:
        size = _size(context, job)
    except Stopped as stopped:
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
    wanted = wanted_files(context, job, collection)
    is_container = job.configuration.payload_type is PayloadType.CONTAINER
    known = [file.size for file in wanted if file.size is not None]
    asked = _asked(context, collection, [file for file in wanted if file.size is None])
    if asked is None:
        return 0
    total = (sum(known) + sum(asked)) * (_UNPACKED if is_container else 1)
    # A server can say what it likes, and all that jobs need is added up.
    return min(total, collection.bytes_max * _UNPACKED, _BYTES_MAX)


def _asked(
    context: IngestContext, collection: Collection, files: Sequence[Wanted]
) -> list[int] | None:
    """The sizes that sources say; None as soon as one cannot be had, for the rest is no use then.

    A server that hangs would else hold up this stage for as long as it has files.
    """
    client, places = context.outbound.client(collection), Places(collection.places)
    is_in_vain = threading.Event()

    def ask(file: Wanted) -> int | None:
        if is_in_vain.is_set() or context.runtime.is_stopping():
            return None
        is_upload = file.url.startswith(f"{PAYLOAD_SCHEME}:")
        size = context.storage.upload_size(file.url) if is_upload else size_of(client, file, places)
        if size is None:
            is_in_vain.set()
        return size

    if len(files) > 1:
        with ThreadPoolExecutor(_ASKED_AT_ONCE, "estimate") as pool:
            sizes = list(pool.map(ask, files))
    else:
        sizes = [ask(file) for file in files]
    if context.runtime.is_stopping():
        raise Postponed("this worker is stopping")
    found = [size for size in sizes if size is not None]
    return found if len(found) == len(files) else None
