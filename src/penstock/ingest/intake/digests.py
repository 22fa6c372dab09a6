"""Digests: the spellings of depositors, and their computation."""

import hashlib
import re
import zlib
from collections.abc import Callable
from typing import Protocol

from penstock.errors import Invalid
from penstock.ingest.intake.validation import one_of, quoted

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
# Also without dashes, and SHA-512/256 in the spellings of Java and OpenSSL.
SPELLINGS = {
    spelling: name
    for name in DIGEST_CHARS
    for spelling in (name, name.replace("-", ""), name.replace("/", "-"), name.replace("/", "_"))
} | {"sha512-256": "sha-512/256", "sha512_256": "sha-512/256"}
# Programs print these as numbers, without leading zeros.
_NUMBERS = {"adler-32", "crc-32"}
_HEX = re.compile("[0-9a-f]+")


class Hash(Protocol):
    """A digest under computation, as in hashlib."""

    def update(self, data: bytes, /) -> None:
        """Add the next bytes."""

    def hexdigest(self) -> str:
        """Return the digest of all bytes so far."""


class _Checksum:
    """A 32-bit checksum, which hashlib does not have."""

    def __init__(self, add: Callable[[bytes, int], int], value: int) -> None:
        self._add = add
        self._value = value

    def update(self, data: bytes, /) -> None:
        self._value = self._add(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def new_hash(algorithm: str) -> Hash:
    """Begin a digest; `algorithm` is a name in DIGEST_CHARS."""
    if algorithm == "adler-32":
        return _Checksum(zlib.adler32, 1)
    if algorithm == "crc-32":
        return _Checksum(zlib.crc32, 0)
    name = algorithm.replace("-", "").replace("/", "_")
    return hashlib.new(name, usedforsecurity=False)


def read_digest(algorithm: str | None, digest: str | None) -> tuple[str | None, str | None]:
    """Return the standard name of the algorithm and the digest in lower case, or neither."""
    if algorithm is None and digest is None:
        return None, None
    if algorithm is None:
        raise Invalid("there is a digest but no algorithm; fill in nfo:hashAlgorithm")
    name = SPELLINGS.get(algorithm.casefold())
    if name is None:
        raise Invalid(f"algorithm {quoted(algorithm)} is unknown; use {one_of(DIGEST_CHARS)}")
    if digest is None:
        raise Invalid(f"there is the algorithm {name} but no digest; fill in nfo:hashValue")
    digest = digest.lower()
    if name in _NUMBERS:
        digest = digest.zfill(DIGEST_CHARS[name])
    if not _HEX.fullmatch(digest):
        raise Invalid(f"the {name} digest {quoted(digest)} is not hexadecimal; correct it")
    if len(digest) != DIGEST_CHARS[name]:
        raise Invalid(
            f"the {name} digest {quoted(digest)} has {len(digest)} characters; "
            f"it must have {DIGEST_CHARS[name]}"
        )
    return name, digest
