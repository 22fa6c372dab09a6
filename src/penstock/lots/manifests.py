"""Manifests: the bill of materials of a lot, or of one part of it.

The state of a manifest is in its key, so that a listing of the object store tells everything.
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
DATASETS = "datasets"  # where all manifests are
DATA = "data"  # where attempts write data
ARCS = "arcs"  # where all state keys are
RETRY_MARK = "~"  # behind an attempt: it was given to another worker, for the n-th time


class Item(Struct, frozen=True, omit_defaults=True):
    """One thing that a lot consists of."""

    uri: str
    size: int | None = None
    digest: str | None = None  # sha-256:HEX, or sha-512:HEX
    created: str | None = None
    format: str | None = None
    ark: str | None = None  # of the stored object that it is a file of


class Check(Struct, frozen=True, omit_defaults=True):
    """What a check said: of the lot as a whole, or of one field."""

    name: str
    success: bool
    field: str = ""
    detail: str = ""

    @property
    def words(self) -> str:
        """The check, as a person would name it."""
        of_field = f" of {self.field}" if self.field else ""
        return f"{self.name}{of_field}{': ' if self.detail else ''}{self.detail}"


class PartLine(Struct, frozen=True, omit_defaults=True):
    """A part of a lot: where its own manifest is, and what that says."""

    part: str
    key: str
    state: ManifestState
    uris: int = 0
    bytes: int = 0


class DatasetRef(Struct, frozen=True):
    """A dataset by name, and the label of the way its lots are cut."""

    namespace: str
    name: str
    version: str = "1"


class ArcRef(Struct, frozen=True):
    """An arc by name, and the project and version that it is declared with."""

    namespace: str
    name: str
    project: str
    version: str


class Manifest(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What a lot consists of: URIs, or parts that have manifests of their own."""

    schema: int = SCHEMA
    state: ManifestState
    lot: str
    dataset: DatasetRef
    uri_type: UriType = UriType.IDENTIFIER
    uris: tuple[Item, ...] = ()
    parts: tuple[PartLine, ...] = ()
    checks: tuple[Check, ...] = ()
    attempt: str = ""
    part: str = ""
    created: str = ""
    comment: str = ""

    @property
    def count(self) -> int:
        """How many things it lists, with those of its parts."""
        return len(self.uris) + sum(part.uris for part in self.parts)

    @property
    def bytes(self) -> int:
        """The bytes of them, as far as they are known."""
        own = sum(item.size or 0 for item in self.uris)
        return own + sum(part.bytes for part in self.parts)


class ManifestNote(Struct, frozen=True):
    """What the database keeps of a manifest in the object store."""

    state: ManifestState
    key: str
    uris: int
    bytes: int
    digest: str
    attempt: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Manifest).decode


def encode(manifest: Manifest) -> bytes:
    """The text of a manifest."""
    return msgspec.json.format(_encode(manifest), indent=1)


def decode(content: bytes, where: str) -> Manifest:
    """Read a manifest, or say what is wrong with it."""
    try:
        manifest = _decode(content)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise Invalid(f"{where} is not a manifest: {error}") from None
    if manifest.schema != SCHEMA:
        raise Invalid(f"{where} has manifest schema {manifest.schema}; {SCHEMA} is known here")
    if manifest.state is ManifestState.EMPTY and manifest.count:
        raise Invalid(f"{where} says that the lot is empty, and lists {manifest.count} things")
    return manifest


def note(manifest: Manifest, key: str, content: bytes) -> ManifestNote:
    """What to keep of a manifest that was written under a key."""
    return ManifestNote(
        state=manifest.state,
        key=key,
        uris=manifest.count,
        bytes=manifest.bytes,
        digest=hashlib.sha256(content).hexdigest(),
        attempt=manifest.attempt,
    )


def lot_folder(dataset: DatasetRef, lot: str) -> str:
    """Where the manifests of a lot are."""
    return f"{DATASETS}/{_dataset(dataset)}/lot={_safe(lot)}"


def manifest_key(
    dataset: DatasetRef, lot: str, state: ManifestState, attempt: str = "", part: str = ""
) -> str:
    """Where a manifest is; with an attempt, where no other attempt writes."""
    tried = f"/attempt={_safe(attempt)}" if attempt else ""
    of_part = f"/part={_safe(part)}" if part else ""
    return f"{lot_folder(dataset, lot)}/state={state}{tried}{of_part}/{MANIFEST}"


def data_folder(dataset: DatasetRef, lot: str, attempt: str, part: str = "") -> str:
    """Where an attempt writes the data of a lot, or of a part; it ends in /."""
    of_part = f"part={_safe(part)}/" if part else ""
    return f"{lot_data_folder(dataset, lot)}/attempt={_safe(attempt)}/{of_part}"


def lot_data_folder(dataset: DatasetRef, lot: str) -> str:
    """Where all attempts write the data of a lot."""
    return f"{DATA}/{_dataset(dataset)}/lot={_safe(lot)}"


def arcs_folder(namespace: str) -> str:
    """Where the state keys of all arcs of a namespace are."""
    return f"{ARCS}/namespace={_safe(namespace)}"


def arc_segment(name: str) -> str:
    """The segment by which keys name an arc."""
    return f"arc={_safe(name)}"


def arc_folder(arc: ArcRef, lot: str = "") -> str:
    """Where the state keys of an arc are, of one lot or of all."""
    of_lot = f"/lot={_safe(lot)}" if lot else ""
    cut = f"project={_safe(arc.project)}/version={_safe(arc.version)}"
    return f"{arcs_folder(arc.namespace)}/{cut}/{arc_segment(arc.name)}{of_lot}"


def arc_key(arc: ArcRef, lot: str, state: ArcState) -> str:
    """The key whose name tells where an arc stands with a lot."""
    return f"{arc_folder(arc, lot)}/{state}.arc"


def _dataset(dataset: DatasetRef) -> str:
    return (
        f"namespace={_safe(dataset.namespace)}/name={_safe(dataset.name)}"
        f"/version={_safe(dataset.version)}"
    )


@lru_cache(maxsize=4096)
def _safe(text: str) -> str:
    """A text as one segment of a key that every store takes and every listing gives back."""
    return quote(text, safe="-_.:@+,~") or "%"
