"""Deposit a folder as one batch, wait for the report, and print the stored objects.

    python examples/deposit.py FOLDER

The program packs the files into one archive and uploads it. The digest of the archive is the key
of the batch, so running the program twice for the same content deposits it once. The server's
daemons (`penstock ingest start`) do the rest; this program only waits.
"""

import hashlib
import sys
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock import ApiError, Client
from penstock.schema.ingest import ShownReport

COLLECTION = "scans"


def packed(folder: Path, archive: Path) -> str:
    """Pack a folder reproducibly and return the digest of the archive."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as pack:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(str(path.relative_to(folder)))
                pack.writestr(entry, path.read_bytes())
    return hashlib.sha256(archive.read_bytes()).hexdigest()


def deposit(client: Client, folder: Path) -> str:
    """Submit the folder and return the id of its batch."""
    with TemporaryDirectory() as place:
        archive = Path(place, f"{folder.name}.zip")
        digest = packed(folder, archive)
        with archive.open("rb") as content:
            payload = client.upload_payload(archive.name, content)
        batch = client.submit_batch(
            COLLECTION,
            payload.url,
            type="container",
            digest=("sha-256", digest),
            what=folder.name,
            key=digest,
        )
    return batch.id


def report_of(client: Client, batch: str) -> ShownReport:
    """Wait for the report of the batch and return it."""
    while True:
        try:
            return client.batch_report(batch)
        except ApiError as error:
            if error.code != 404:
                raise
        time.sleep(0.2)


def main() -> None:
    """Deposit a folder and print the result."""
    folder = Path(sys.argv[1]).resolve()
    with Client() as client:
        client.put_collection(COLLECTION, dataset="scans", namespace="library")
        batch = deposit(client, folder)
        report = report_of(client, batch)
        print(report.text)
        for stored in client.objects(collection=COLLECTION).objects:
            if stored.batch == batch:
                names = ", ".join(file.name for file in client.object_files(stored.ark).files)
                print(f"{stored.ark}: {names}")
    sys.exit(1 if report.failed_jobs else 0)


if __name__ == "__main__":
    main()
