"""Digests as depositors write them."""

import re

from penstock.errors import Invalid
from penstock.ingest.receiving.faults import one_of, quoted

_DIGEST_CHARS = {"md5": 32, "sha-1": 40, "sha-256": 64, "sha-384": 96, "sha-512": 128}
_ALGORITHMS = {
    spelling: name for name in _DIGEST_CHARS for spelling in (name, name.replace("-", ""))
}
_HEX = re.compile("[0-9a-f]+")


def read_digest(algorithm: str | None, digest: str | None) -> tuple[str | None, str | None]:
    """The algorithm by its one name and the digest in lower case, or Invalid; or neither."""
    if algorithm is None and digest is None:
        return None, None
    if algorithm is None:
        raise Invalid("there is a digest but no algorithm; fill in nfo:hashAlgorithm")
    known = _ALGORITHMS.get(algorithm.casefold())
    if known is None:
        raise Invalid(f"algorithm {quoted(algorithm)} is unknown; use {one_of(_DIGEST_CHARS)}")
    if digest is None:
        raise Invalid(f"there is the algorithm {known} but no digest; fill in nfo:hashValue")
    digest = digest.lower()
    if not _HEX.fullmatch(digest):
        raise Invalid(f"the {known} digest {quoted(digest)} is not hexadecimal; correct it")
    if len(digest) != _DIGEST_CHARS[known]:
        raise Invalid(
            f"the {known} digest {quoted(digest)} has {len(digest)} characters; "
            f"it must have {_DIGEST_CHARS[known]}"
        )
    return known, digest
