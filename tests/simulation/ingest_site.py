"""A site for ingest: a web server with payloads, a plane, and the expected results."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from penstock.config import Settings
from penstock.ingest.collections import PutCollection
from penstock.ingest.intake.checkm import CheckmRow, ManifestKind, write
from penstock.ingest.intake.deposits import DepositRequest
from penstock.ingest.models import Batch
from penstock.plane import Plane
from penstock.schema.ingest import Collection, PayloadType
from penstock.states import BatchState, IngestState
from tests.web import Web, content, status

COLLECTION = "maps"
SECRET = "a secret"
ENDED = (BatchState.COMPLETED, BatchState.FAILED)
# A name begins with the defect of its file. All other files are good.
BAD = ("wrong", "missing", "corrupt")
# The progress of a job in each state.
FAR = {state: number for number, state in enumerate(IngestState)}


class Site:
    """One database, queue, object store and working folder, and the batches submitted there."""

    def __init__(self, plane: Plane, web: Web) -> None:
        self.plane = plane
        self.web = web
        self.store = plane.context.store
        self.batches: dict[str, BatchState] = {}  # and the expected result of each
        self._number = 0

    @property
    def open_batches(self) -> int:
        """Return how many batches have not ended."""
        return sum(self.store.batch(batch_id).status not in ENDED for batch_id in self.batches)

    @property
    def progress(self) -> int:
        """Return the progress of all jobs together. It grows with every step of a job."""
        return sum(FAR[line.status] * line.jobs for line in self.store.tally())

    @property
    def delivered(self) -> list[str]:
        """Return the keys of all received callbacks."""
        called = self.web.requests_to("/callback", "POST")
        return [request.headers["penstock-delivery"] for request in called]

    def submit_files(self, count: int) -> str:
        """Submit a batch of single files: two for one object, and some of many are bad."""
        number = self._next()
        rows = []
        for row in range(count):
            kind = "wrong" if row % 9 == 4 else "missing" if row % 17 == 7 else "good"
            name = f"{kind}-{number}-{row}.csv"
            local_id = f"twin-{number}" if row in (1, 2) else f"local-{number}-{row}"
            rows.append(self._file(name, local_id=local_id if row % 3 else None))
        manifest = write(ManifestKind.FILES, rows)
        url = self.web.on(f"/{number}/batch.checkm", content(manifest))
        is_bad = any(row.name.startswith(BAD) for row in rows)
        return self._submit(url, PayloadType.MANIFEST, is_bad=is_bad)

    def submit_container(self) -> str:
        """Submit a batch of one archive."""
        number = self._next()
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for member in range(3):
                archive.writestr(f"folder/{member}.txt", f"{number} {member}\n" * 20)
        url = self.web.on(f"/{number}/good.zip", content(packed.getvalue()))
        return self._submit(url, PayloadType.CONTAINER, is_bad=False)

    def submit_manifest(self, *, is_corrupt: bool = False) -> str:
        """Submit a batch of one object with several files."""
        number = self._next()
        rows = [self._file(f"good-{number}-{row}.csv") for row in range(3)]
        manifest = write(ManifestKind.OBJECT, rows)
        name = "corrupt.checkm" if is_corrupt else "good.checkm"
        body = manifest.replace(b"#%eof", b"") if is_corrupt else manifest
        url = self.web.on(f"/{number}/{name}", content(body))
        return self._submit(url, PayloadType.OBJECT_MANIFEST, is_bad=is_corrupt)

    def _submit(self, url: str, kind: PayloadType, *, is_bad: bool) -> str:
        deposit = DepositRequest(collection=COLLECTION, url=url, type=kind, submitter="jo", key=url)
        batch: Batch = self.plane.desk.submit(deposit).batch
        self.batches[batch.id] = BatchState.FAILED if is_bad else BatchState.COMPLETED
        return batch.id

    def _file(self, name: str, local_id: str | None = None) -> CheckmRow:
        body = f"{name}\n".encode() * 50
        if not name.startswith("missing"):
            self.web.on(f"/{name}", content(body))
        digest = hashlib.sha256(b"" if name.startswith("wrong") else body).hexdigest()
        return CheckmRow(
            line=0,
            url=f"{self.web.url}/{name}",
            algorithm="sha-256",
            digest=digest,
            size=len(body) if name.endswith(("1.csv", "2.csv")) else None,
            name=name,
            local_id=local_id,
        )

    def _next(self) -> int:
        self._number += 1
        return self._number


def site_settings(folder: Path, database: str, queue: str, session_seconds: int) -> dict[str, Any]:
    """Return the settings of all processes at a site."""
    return {
        "database": database,
        "queue": queue,
        "objects": f"file://{folder / 'objects'}",
        "ingest_folder": str(folder / "work"),
        "ingest_session_seconds": session_seconds,
        "space_free_mb": 0,
    }


@contextmanager
def open_site(settings: dict[str, Any], *, callback: bool = False) -> Iterator[Site]:
    """Open a site with one collection, without workers."""
    with ExitStack() as stack:
        web = stack.enter_context(Web())
        web.on("/callback", status(200))
        plane = stack.enter_context(Plane.open(Settings(**settings)))
        collection = Collection(
            name=COLLECTION,
            dataset="maps",
            places=(f"{web.url}/",),
            callback=f"{web.url}/callback" if callback else None,
            callback_secret=SECRET if callback else None,
        )
        plane.catalog.submit(PutCollection("test", collection)).result()
        yield Site(plane, web)
