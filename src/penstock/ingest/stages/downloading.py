"""Downloading: fetch every file and check it while it arrives.

Needs: the sources. Does: fetches missing files, resumes partial ones, checks sizes and digests,
unpacks containers and verifies bags; corrects `space_needed`, and the priority unless a person set
it. Fails if a file cannot be fetched after some tries, or has a wrong size or digest. Good files
stay for a resume.
"""

from penstock.ingest.context import IngestContext, Postponed
from penstock.ingest.intake.fetching import FetchStopped
from penstock.ingest.intake.payload import PACKED, fetch_files, job_folder
from penstock.ingest.models import IngestJob
from penstock.ingest.transitions import move_job, size_penalty
from penstock.schema.ingest import PayloadType
from penstock.states import IngestState


def work(context: IngestContext, job: IngestJob) -> IngestJob:
    """Fetch the object's files."""
    collection = context.collections.of_job(job)
    try:
        files = fetch_files(context, job, collection)
    except FetchStopped as stopped:
        raise Postponed(str(stopped)) from None
    size = sum(file.size for file in files)
    if job.configuration.payload_type is PayloadType.CONTAINER:
        size += (job_folder(job, PACKED) / job.configuration.payload_name).stat().st_size
    priority = job.priority - size_penalty(job.space_needed) + size_penalty(max(1, size))
    return move_job(
        job, IngestState.PROCESSING, context.runtime.clock(), space_needed=size, priority=priority
    )
