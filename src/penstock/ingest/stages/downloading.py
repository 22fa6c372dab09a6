"""Downloading: fetch every file, and check it while it comes.

Needs: the sources. Does: fetches what is not here yet, resumes what was cut off, checks sizes and
digests, unpacks containers and verifies bags; corrects `space_needed` and the priority by what
really came, unless a person set it. Fails when a file cannot be had after some tries, or is not
what it should be. What is good stays for a resume.
"""

from penstock.ingest.context import IngestContext, Postponed
from penstock.ingest.intake.fetching import Stopped
from penstock.ingest.intake.payload import PACKED, fetch_files, folder_of
from penstock.ingest.models import IngestJob, PayloadType
from penstock.ingest.transitions import move_job, size_penalty
from penstock.states import IngestState


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Fetch the object's files."""
    collection = context.collections.of_job(job)
    try:
        files = fetch_files(context, job, collection)
    except Stopped as stopped:
        raise Postponed(str(stopped)) from None
    size = sum(file.size for file in files)
    if job.configuration.payload_type is PayloadType.CONTAINER:
        size += (folder_of(job, PACKED) / job.configuration.payload_name).stat().st_size
    priority = job.priority - size_penalty(job.space_needed) + size_penalty(max(1, size))
    return move_job(
        job, IngestState.PROCESSING, context.runtime.clock(), space_needed=size, priority=priority
    )
