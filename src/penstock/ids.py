"""Ids: derived where a name decides, random where nothing does.

A dataset's or job's id is a digest of its namespace and name. Any server knows it without
asking the database, and two servers can never give one thing two ids.
"""

import hashlib
import os
import re
import time
import uuid
from functools import lru_cache
from typing import Final

# As a segment of a path they mean a folder, also encoded: whoever sends or passes on such a path
# makes it the path of something else. No name is one of them (docs/adr/0010-plain-asgi.md).
DOTS: Final = frozenset({".", ".."})
# PostgreSQL takes about 2,700 bytes into a row of an index; two names share a row.
NAME_BYTES_MAX: Final = 1024

_RUN_NAMESPACE = uuid.UUID("8f0f2c9c-6c53-5a0b-9d0c-3f5f0b7a1c11")
_TIMED = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
).fullmatch
_WRITTEN_AS_WE_DO = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def derived_id(*parts: str) -> str:
    """A UUID (version 8) that is the same whenever the parts are the same."""
    digest = hashlib.blake2b("\x00".join(parts).encode(), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:]}"


def keyed_id(key: str, *parts: str) -> str:
    """The id that belongs to these parts and to a key that a caller chose.

    Of a key that is ordered by time, as ours are, it has the time: indexes grow at their end.
    """
    made = derived_id(*parts, key)
    is_timed = _TIMED(key) is not None
    return f"{key[:13]}-7{made[15:]}" if is_timed else made


@lru_cache(maxsize=65_536)
def dataset_id(namespace: str, name: str) -> str:
    """The id that belongs to this dataset name."""
    return derived_id("dataset", namespace, name)


@lru_cache(maxsize=65_536)
def job_id(namespace: str, name: str) -> str:
    """The id that belongs to this job name."""
    return derived_id("job", namespace, name)


def run_version_id(dataset: str, run: str) -> str:
    """The id of the version of a dataset that a run makes."""
    return keyed_id(run, "version", dataset)


def run_id(text: str) -> str:
    """The run's UUID; a text that is not one is mapped to one, the same each time."""
    if _WRITTEN_AS_WE_DO(text) is not None:
        return text
    if len(text) == 36:
        try:
            return str(uuid.UUID(text))
        except ValueError:
            pass
    return str(uuid.uuid5(_RUN_NAMESPACE, text))


def last_id_at(at: int) -> str:
    """The greatest id that is ordered by time and of this moment, in microseconds since 1970."""
    millis = f"{at // 1000:012x}"
    return f"{millis[:8]}-{millis[8:]}-ffff-ffff-ffffffffffff"


def new_id() -> str:
    """A fresh UUID (version 7): ordered by time, so that indexes grow at their end."""
    millis, chance = f"{time.time_ns() // 1_000_000:012x}", os.urandom(10).hex()
    variant = "89ab"[int(chance[3], 16) & 3]
    return f"{millis[:8]}-{millis[8:]}-7{chance[:3]}-{variant}{chance[4:7]}-{chance[7:19]}"
