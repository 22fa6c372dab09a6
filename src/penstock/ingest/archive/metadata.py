"""ERC and Dublin Core records: writing both, and reading ERC records in ANVL.

An ERC record has lines of `label: value`. A line that begins with a blank continues the line
before, and one that begins with `#` is a comment. `%XX` is a byte. The short form has who, what,
when and where behind `erc:`, separated by `|`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote
from xml.etree import ElementTree

from msgspec import Struct

from penstock.errors import Invalid
from penstock.ingest.archive.arks import read_ark, read_local_ids
from penstock.ingest.archive.ocfl.repository import Depository
from penstock.ingest.models import TEXT_CHARS_MAX

UNASSIGNED = "(:unas)"

_OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
_DC = "http://purl.org/dc/elements/1.1/"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMA = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
# All characters that some reader treats as a line end, and other controls except the tab.
_ANVL_SPECIAL = re.compile("[%\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END = re.compile("\r\n?")
_HALF_PAIR = re.compile("[\ud800-\udfff]")

for _prefix, _namespace in (("oai_dc", _OAI_DC), ("dc", _DC), ("xsi", _XSI)):
    ElementTree.register_namespace(_prefix, _namespace)

ERC_FILE = "mrt-erc.txt"
ERC_BYTES_MAX = 1 << 20
_STORED = f"system/{ERC_FILE}"
_SHORT_FORM = ("who", "what", "when", "where")
_ARK = re.compile("ark:", re.IGNORECASE)


class Description(Struct, frozen=True, kw_only=True):
    """The description of an object: who, what, when and where of the ERC kernel.

    `places` are further values of where.
    """

    who: str | None = None
    what: str | None = None
    when: str | None = None
    where: str | None = None
    places: tuple[str, ...] = ()


def format_anvl(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Format lines of `name: value`, with percent signs and line ends in values encoded."""
    return "".join(
        f"{name}: {encode_value(value)}".rstrip() + "\n" for name, value in pairs
    ).encode()


def encode_value(value: str) -> str:
    """Encode a value on one line, without blanks at its ends."""
    return _ANVL_SPECIAL.sub(_percent_encode, _HALF_PAIR.sub("\ufffd", value)).strip()


def erc(description: Description, ark: str, local_ids: Sequence[str]) -> bytes:
    """Format the ERC record; a missing element is `(:unas)`."""
    elements = [("who", description.who), ("what", description.what), ("when", description.when)]
    pairs = [(name, _stripped(value) or UNASSIGNED) for name, value in elements]
    places = [("where", place) for place in _places(description, ark, local_ids)]
    return format_anvl([("erc", ""), *pairs, *places])


def dublin_core(description: Description, ark: str, local_ids: Sequence[str]) -> bytes:
    """Format the Dublin Core record for OAI harvesters."""
    root = ElementTree.Element(
        f"{{{_OAI_DC}}}dc", {f"{{{_XSI}}}schemaLocation": f"{_OAI_DC} {_SCHEMA}"}
    )
    elements = [
        ("title", description.what),
        ("creator", description.who),
        ("date", description.when),
    ]
    places = [("identifier", place) for place in _places(description, ark, local_ids)]
    for name, value in [*elements, *places]:
        text = _NOT_XML.sub("", _LINE_END.sub("\n", value or "")).strip()
        if text:
            ElementTree.SubElement(root, f"{{{_DC}}}{name}").text = text
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return written + b"\n"


def _places(description: Description, ark: str, local_ids: Sequence[str]) -> Iterator[str]:
    """List the places of the object without duplicates: its ARK first, then the local ids."""
    places = [ark, *local_ids, *description.places, description.where]
    return iter(dict.fromkeys(place for place in map(_stripped, places) if place))


def _stripped(value: str | None) -> str:
    return (value or "").strip()


def _percent_encode(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


class Erc(Struct, frozen=True, kw_only=True):
    """The content of an ERC record; several values of one label are joined by `; `."""

    who: str | None = None
    what: str | None = None
    when: str | None = None
    places: tuple[str, ...] = ()

    @property
    def ark(self) -> str | None:
        """The first place that is an ARK; Invalid if it is malformed."""
        ark = next((place for place in self.places if _ARK.match(place)), None)
        return None if ark is None else read_ark(ark)

    @property
    def local_ids(self) -> tuple[str, ...]:
        """The places that are not ARKs: the depositor's own names for the object."""
        names = (place for place in self.places if not _ARK.match(place))
        return tuple(dict.fromkeys(name for text in names for name in read_local_ids(text)))


EMPTY_ERC = Erc()


def stored_erc(depository: Depository, ark: str, version: int | None = None) -> Erc:
    """Read the description in a version of an object, or in the newest."""
    content = depository.read_file(ark, _STORED, version)
    return EMPTY_ERC if content is None else read_erc(content, _STORED)


def read_erc(content: bytes, path: str) -> Erc:
    """Read an ERC record, or raise Invalid, which names the file and the line."""
    if len(content) > ERC_BYTES_MAX:
        raise Invalid(
            f"{path} has more than {ERC_BYTES_MAX:,} bytes; give it another name, or correct it, "
            "and submit it again"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid(f"{path} is not UTF-8; save it as UTF-8 and submit it again") from None
    values: dict[str, list[str]] = {}
    for label, value in _elements(text, path):
        if label == "erc" and value:
            parts = (part.strip() for part in value.split("|"))
            for name, part in zip(_SHORT_FORM, parts, strict=False):
                values.setdefault(name, []).append(part)
        else:
            values.setdefault(label, []).append(value)
    values_by_label = {
        label: [v for v in each if v and v != UNASSIGNED] for label, each in values.items()
    }
    return Erc(
        who=_joined(values_by_label.get("who")),
        what=_joined(values_by_label.get("what")),
        when=_joined(values_by_label.get("when")),
        places=tuple(dict.fromkeys(values_by_label.get("where", ()))),
    )


def _elements(text: str, path: str) -> Iterator[tuple[str, str]]:
    """Yield each label in lower case, with its value."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(re.split("\r\n?|\n", text), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] in " \t" and lines:
            first, start = lines[-1]
            lines[-1] = first, f"{start} {line.strip()}"
        else:
            lines.append((number, line))
    for number, line in lines:
        label, colon, value = line.partition(":")
        if not colon:
            raise Invalid(
                f"{path}, line {number} has no label; write it like `what: TITLE`, and submit it "
                "again"
            )
        decoded = unquote(value.strip(), errors="replace").strip()
        if len(decoded) > TEXT_CHARS_MAX:
            raise Invalid(
                f"{path}, line {number} has {len(decoded):,} characters; at most "
                f"{TEXT_CHARS_MAX:,} are taken"
            )
        yield label.strip().lower(), decoded


def _joined(values: list[str] | None) -> str | None:
    return "; ".join(values) if values else None
