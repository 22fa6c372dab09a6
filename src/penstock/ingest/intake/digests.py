"""Digests as depositors write them, and how they are computed."""

import hashlib
import re
import zlib
from collections.abc import Callable
from typing import Protocol

from penstock.errors import Invalid
from penstock.ingest.intake.faults import one_of, quoted

DIGEST_CHARS = {
    "adler-32": 8,
    "crc-32": 8,
    "md5": 32,
    "sha-1": 40,
    "sha-256": 64,
    "sha-384": 96,
    "sha-512": 128,
    "sha-512/256": 64,
}
ALGORITHMS = frozenset(DIGEST_CHARS)
# Without dashes, and SHA-512/256 also as Java and OpenSSL write it.
SPELLINGS = {
    spelling: name
    for name in DIGEST_CHARS
    for spelling in (name, name.replace("-", ""), name.replace("/", "-"), name.replace("/", "_"))
} | {"sha512-256": "sha-512/256", "sha512_256": "sha-512/256"}
# Programs that print these as numbers leave out zeros at the front.
_NUMBERS = {"adler-32", "crc-32"}
_HEX = re.compile("[0-9a-f]+")


class Hash(Protocol):
    """A digest in the making, as in hashlib."""

    def update(self, data: bytes, /) -> None:
        """Add the next bytes."""

    def hexdigest(self) -> str:
        """The digest of all bytes so far."""


class _Checksum:
    """A checksum of 32 bits, which hashlib does not have."""

    def __init__(self, add: Callable[[bytes, int], int], value: int) -> None:
        self._add = add
        self._value = value

    def update(self, data: bytes, /) -> None:
        self._value = self._add(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def new_hash(algorithm: str) -> Hash:
    """Begin a digest of an algorithm, by its one name."""
    if algorithm == "adler-32":
        return _Checksum(zlib.adler32, 1)
    if algorithm == "crc-32":
        return _Checksum(zlib.crc32, 0)
    name = algorithm.replace("-", "").replace("/", "_")
    return hashlib.new(name, usedforsecurity=False)


def read_digest(algorithm: str | None, digest: str | None) -> tuple[str | None, str | None]:
    """The algorithm by its one name and the digest in lower case, or Invalid; or neither."""
    if algorithm is None and digest is None:
        return None, None
    if algorithm is None:
        raise Invalid("there is a digest but no algorithm; fill in nfo:hashAlgorithm")
    known = SPELLINGS.get(algorithm.casefold())
    if known is None:
        raise Invalid(f"algorithm {quoted(algorithm)} is unknown; use {one_of(DIGEST_CHARS)}")
    if digest is None:
        raise Invalid(f"there is the algorithm {known} but no digest; fill in nfo:hashValue")
    digest = digest.lower()
    if known in _NUMBERS:
        digest = digest.zfill(DIGEST_CHARS[known])
    if not _HEX.fullmatch(digest):
        raise Invalid(f"the {known} digest {quoted(digest)} is not hexadecimal; correct it")
    if len(digest) != DIGEST_CHARS[known]:
        raise Invalid(
            f"the {known} digest {quoted(digest)} has {len(digest)} characters; "
            f"it must have {DIGEST_CHARS[known]}"
        )
    return known, digest
