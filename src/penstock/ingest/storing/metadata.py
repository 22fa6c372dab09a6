"""An object's description as it is stored beside its files: ERC text and Dublin Core XML."""

import re
from collections.abc import Iterable, Iterator, Sequence
from xml.etree import ElementTree

from msgspec import Struct

UNASSIGNED = "(:unas)"

_OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
_DC = "http://purl.org/dc/elements/1.1/"
_XSI = "http://www.w3.org/2001/XMLSchema-instance"
_SCHEMA = "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"
# Everything that some reader takes as the end of a line, and other controls but the tab.
_ANVL_SPECIAL = re.compile("[%\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LINE_END = re.compile("\r\n?")
_HALF_PAIR = re.compile("[\ud800-\udfff]")

for _prefix, _namespace in (("oai_dc", _OAI_DC), ("dc", _DC), ("xsi", _XSI)):
    ElementTree.register_namespace(_prefix, _namespace)


class Description(Struct, frozen=True, kw_only=True):
    """The description of an object: the four questions of the ERC kernel.

    `places` are more answers to the question where.
    """

    who: str | None = None
    what: str | None = None
    when: str | None = None
    where: str | None = None
    places: tuple[str, ...] = ()


def anvl(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Lines of `name: value`, with percent signs and line ends in values encoded."""
    return "".join(f"{name}: {anvl_value(value)}".rstrip() + "\n" for name, value in pairs).encode()


def anvl_value(value: str) -> str:
    """A value on one line, without the blanks at its ends that every reader drops."""
    return _ANVL_SPECIAL.sub(_percent, _HALF_PAIR.sub("\ufffd", value)).strip()


def erc(description: Description, ark: str, local_ids: Sequence[str]) -> bytes:
    """The ERC record; what nobody has said is `(:unas)`."""
    said = [("who", description.who), ("what", description.what), ("when", description.when)]
    pairs = [(name, _stripped(value) or UNASSIGNED) for name, value in said]
    places = [("where", place) for place in _places(description, ark, local_ids)]
    return anvl([("erc", ""), *pairs, *places])


def dublin_core(description: Description, ark: str, local_ids: Sequence[str]) -> bytes:
    """The Dublin Core record in the form that OAI harvesters read."""
    root = ElementTree.Element(
        f"{{{_OAI_DC}}}dc", {f"{{{_XSI}}}schemaLocation": f"{_OAI_DC} {_SCHEMA}"}
    )
    said = [("title", description.what), ("creator", description.who), ("date", description.when)]
    places = [("identifier", place) for place in _places(description, ark, local_ids)]
    for name, value in [*said, *places]:
        text = _NOT_XML.sub("", _LINE_END.sub("\n", value or "")).strip()
        if text:
            ElementTree.SubElement(root, f"{{{_DC}}}{name}").text = text
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)
    return written + b"\n"


def _places(description: Description, ark: str, local_ids: Sequence[str]) -> Iterator[str]:
    """Where the object is to be found, each once: its ARK, then the depositor's own names."""
    places = [ark, *local_ids, *description.places, description.where]
    return iter(dict.fromkeys(place for place in map(_stripped, places) if place))


def _stripped(value: str | None) -> str:
    return (value or "").strip()


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())
