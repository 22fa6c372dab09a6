"""Ids: derived from names, or random.

The id of a dataset or job is a digest of its namespace and name. Every server derives it without a
query, and two servers never assign different ids to one thing.
"""

import hashlib
import os
import re
import time
import uuid
from functools import lru_cache
from typing import Final

# As path segments they mean folders, even if encoded: clients and proxies that normalize paths
# would change the path. No name may be one of them (docs/adr/0010-plain-asgi.md).
DOTS: Final = frozenset({".", ".."})
# PostgreSQL takes about 2,700 bytes into a row of an index; two names share a row.
NAME_BYTES_MAX: Final = 1024

_RUN_NAMESPACE = uuid.UUID("8f0f2c9c-6c53-5a0b-9d0c-3f5f0b7a1c11")
_TIMED = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
).fullmatch
_WRITTEN_AS_WE_DO = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


def derived_id(*parts: str) -> str:
    """Return the UUID (version 8) of these parts; equal parts give equal ids."""
    digest = hashlib.blake2b("\x00".join(parts).encode(), digest_size=16).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:]}"


def keyed_id(key: str, *parts: str) -> str:
    """Return the id of these parts and of a key that the caller chose.

    The id takes the time of a time-ordered key, so that indexes grow at their end.
    """
    made = derived_id(*parts, key)
    is_timed = _TIMED(key) is not None
    return f"{key[:13]}-7{made[15:]}" if is_timed else made


@lru_cache(maxsize=65_536)
def dataset_id(namespace: str, name: str) -> str:
    """Return the id of a dataset."""
    return derived_id("dataset", namespace, name)


@lru_cache(maxsize=65_536)
def job_id(namespace: str, name: str) -> str:
    """Return the id of a job."""
    return derived_id("job", namespace, name)


def run_version_id(dataset: str, run: str) -> str:
    """Return the id of the version of a dataset that a run writes."""
    return keyed_id(run, "version", dataset)


def run_id(text: str) -> str:
    """Return the UUID of a run; other texts map to a UUID."""
    if _WRITTEN_AS_WE_DO(text) is not None:
        return text
    if len(text) == 36:
        try:
            return str(uuid.UUID(text))
        except ValueError:
            pass
    return str(uuid.uuid5(_RUN_NAMESPACE, text))


def last_id_at(at: int) -> str:
    """Return the greatest time-ordered id of a moment, in microseconds since 1970."""
    millis = f"{at // 1000:012x}"
    return f"{millis[:8]}-{millis[8:]}-ffff-ffff-ffffffffffff"


def new_id() -> str:
    """Return a new UUID (version 7): ordered by time, so that indexes grow at their end."""
    millis, chance = f"{time.time_ns() // 1_000_000:012x}", os.urandom(10).hex()
    variant = "89ab"[int(chance[3], 16) & 3]
    return f"{millis[:8]}-{millis[8:]}-7{chance[:3]}-{variant}{chance[4:7]}-{chance[7:19]}"
