"""Working folders of batches that are no more.

A batch is deleted before its folder is, so a crash between the two leaves the folder. Each machine
sees its own.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from penstock.errors import Invalid, NotFound
from penstock.ingest.values import Finding
from penstock.ingest.workshop import Workshop

_BATCH_ID = re.compile("bid[0-9]{10}")


def check(shop: Workshop, *, repair: bool) -> Iterator[Finding]:
    """Folders here whose batch is not in the queue; whatever else lies there is left alone."""
    top = Path(shop.settings.ingest_folder)
    found = sorted(top.iterdir()) if top.is_dir() else []
    for folder in found:
        if not _BATCH_ID.fullmatch(folder.name) or not _is_gone(shop, folder.name):
            continue
        if repair:
            shutil.rmtree(folder, ignore_errors=True)
        yield Finding(
            "is the working folder of a batch that is not there",
            str(folder),
            repairable=True,
            repaired=repair and not folder.exists(),
        )


def _is_gone(shop: Workshop, batch_id: str) -> bool:
    try:
        shop.store.batch(batch_id)
    except NotFound:
        return True
    except Invalid:  # it is there, and cannot be read
        return False
    return False
