"""Manifests: the bill of materials of a lot, or of one part of it.

The key of a manifest contains its state, so that a listing of the object store shows all states.
"""

import hashlib
from functools import lru_cache
from urllib.parse import quote

import msgspec
from msgspec import Struct

from penstock.errors import Invalid
from penstock.schema.lots import UriType
from penstock.states import ArcState, ManifestState

SCHEMA = 1
MANIFEST = "manifest.json"
DATASETS = "datasets"  # the folder of all manifests
DATA = "data"  # the folder where attempts write data
ARCS = "arcs"  # the folder of all state keys
RETRY_MARK = "~"  # follows an attempt that moved to another worker, with a count


class Item(Struct, frozen=True, omit_defaults=True):
    """One item of a lot."""

    uri: str
    size: int | None = None
    digest: str | None = None  # sha-256:HEX, or sha-512:HEX
    created: str | None = None
    format: str | None = None
    ark: str | None = None  # the ARK of the stored object, if it is a file of one


class QualityCheck(Struct, frozen=True, omit_defaults=True):
    """The result of a check of a whole lot, or of one field."""

    name: str
    success: bool
    field: str = ""
    detail: str = ""

    @property
    def words(self) -> str:
        """The check in words."""
        of_field = f" of {self.field}" if self.field else ""
        return f"{self.name}{of_field}{': ' if self.detail else ''}{self.detail}"


class PartLine(Struct, frozen=True, omit_defaults=True):
    """A part of a lot: the key of its manifest, and a summary."""

    part: str
    key: str
    state: ManifestState
    uris: int = 0
    bytes: int = 0


class DatasetRef(Struct, frozen=True):
    """A dataset by name, and the label of its partitioning."""

    namespace: str
    name: str
    version: str = "1"


class ArcRef(Struct, frozen=True):
    """An arc by name, with its declared project and version."""

    namespace: str
    name: str
    project: str
    version: str


class Manifest(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The content of a lot: URIs, or parts with their own manifests."""

    schema: int = SCHEMA
    state: ManifestState
    lot: str
    dataset: DatasetRef
    uri_type: UriType = UriType.IDENTIFIER
    uris: tuple[Item, ...] = ()
    parts: tuple[PartLine, ...] = ()
    checks: tuple[QualityCheck, ...] = ()
    attempt: str = ""
    part: str = ""
    created: str = ""
    comment: str = ""

    @property
    def count(self) -> int:
        """The number of items, including those of its parts."""
        return len(self.uris) + sum(part.uris for part in self.parts)

    @property
    def bytes(self) -> int:
        """The known bytes of the items."""
        size = sum(item.size or 0 for item in self.uris)
        return size + sum(part.bytes for part in self.parts)


class ManifestNote(Struct, frozen=True):
    """The database's summary of a manifest in the object store."""

    state: ManifestState
    key: str
    uris: int
    bytes: int
    digest: str
    attempt: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Manifest).decode


def encode(manifest: Manifest) -> bytes:
    """Encode a manifest."""
    return msgspec.json.format(_encode(manifest), indent=1)


def decode(content: bytes, where: str) -> Manifest:
    """Decode a manifest, or raise Invalid with the reason."""
    try:
        manifest = _decode(content)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise Invalid(f"{where} is not a manifest: {error}") from None
    if manifest.schema != SCHEMA:
        raise Invalid(f"{where} has manifest schema {manifest.schema}; {SCHEMA} is known here")
    if manifest.state is ManifestState.EMPTY and manifest.count:
        raise Invalid(f"{where} states that the lot is empty, but lists {manifest.count} items")
    return manifest


def note(manifest: Manifest, key: str, content: bytes) -> ManifestNote:
    """Summarize a manifest that was written under a key."""
    return ManifestNote(
        state=manifest.state,
        key=key,
        uris=manifest.count,
        bytes=manifest.bytes,
        digest=hashlib.sha256(content).hexdigest(),
        attempt=manifest.attempt,
    )


def lot_folder(dataset: DatasetRef, lot: str) -> str:
    """Return the folder of the manifests of a lot."""
    return f"{DATASETS}/{_dataset(dataset)}/lot={_safe(lot)}"


def manifest_key(
    dataset: DatasetRef, lot: str, state: ManifestState, attempt: str = "", part: str = ""
) -> str:
    """Return the key of a manifest; an attempt has keys of its own."""
    of_attempt = f"/attempt={_safe(attempt)}" if attempt else ""
    of_part = f"/part={_safe(part)}" if part else ""
    return f"{lot_folder(dataset, lot)}/state={state}{of_attempt}{of_part}/{MANIFEST}"


def data_folder(dataset: DatasetRef, lot: str, attempt: str, part: str = "") -> str:
    """Return the folder where an attempt writes a lot or a part; it ends in /."""
    of_part = f"part={_safe(part)}/" if part else ""
    return f"{lot_data_folder(dataset, lot)}/attempt={_safe(attempt)}/{of_part}"


def lot_data_folder(dataset: DatasetRef, lot: str) -> str:
    """Return the folder where all attempts write a lot."""
    return f"{DATA}/{_dataset(dataset)}/lot={_safe(lot)}"


def arcs_folder(namespace: str) -> str:
    """Return the folder of the state keys of a namespace."""
    return f"{ARCS}/namespace={_safe(namespace)}"


def arc_segment(name: str) -> str:
    """Return the segment of an arc in keys."""
    return f"arc={_safe(name)}"


def arc_folder(arc: ArcRef, lot: str = "") -> str:
    """Return the folder of the state keys of an arc, for one lot or for all."""
    of_lot = f"/lot={_safe(lot)}" if lot else ""
    version = f"project={_safe(arc.project)}/version={_safe(arc.version)}"
    return f"{arcs_folder(arc.namespace)}/{version}/{arc_segment(arc.name)}{of_lot}"


def arc_key(arc: ArcRef, lot: str, state: ArcState) -> str:
    """Return the key that marks the state of an arc for a lot."""
    return f"{arc_folder(arc, lot)}/{state}.arc"


def _dataset(dataset: DatasetRef) -> str:
    return (
        f"namespace={_safe(dataset.namespace)}/name={_safe(dataset.name)}"
        f"/version={_safe(dataset.version)}"
    )


@lru_cache(maxsize=4096)
def _safe(text: str) -> str:
    """Encode a text as one segment of a key that every store accepts and lists unchanged."""
    return quote(text, safe="-_.:@+,~") or "%"
