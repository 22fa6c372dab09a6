"""Reading ERC records: the description that a depositor, or an earlier deposit, wrote as ANVL.

An ERC record is `label: value` lines. A line that begins with a blank continues the one before; one
that begins with `#` is a comment. `%XX` is a byte. The short form has who, what, when and where
behind `erc:`, divided by `|`.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from msgspec import Struct

from penstock.errors import Invalid
from penstock.ingest.arks import read_ark
from penstock.ingest.local_ids import read_local_ids
from penstock.ingest.storing.metadata import UNASSIGNED
from penstock.ingest.storing.ocfl import Depository
from penstock.ingest.values import TEXT_CHARS_MAX

ERC_FILE = "mrt-erc.txt"
ERC_BYTES_MAX = 1 << 20

_STORED = f"system/{ERC_FILE}"
_SHORT_FORM = ("who", "what", "when", "where")
_ARK = re.compile("ark:", re.IGNORECASE)


class Erc(Struct, frozen=True, kw_only=True):
    """What an ERC record says; several values of one label are joined by `; `."""

    who: str | None = None
    what: str | None = None
    when: str | None = None
    places: tuple[str, ...] = ()

    @property
    def ark(self) -> str | None:
        """The first place that is an ARK, or Invalid if it is not a good one."""
        found = next((place for place in self.places if _ARK.match(place)), None)
        return None if found is None else read_ark(found)

    @property
    def local_ids(self) -> tuple[str, ...]:
        """The places that are not ARKs: the depositor's own names for the object."""
        names = (place for place in self.places if not _ARK.match(place))
        return tuple(dict.fromkeys(name for text in names for name in read_local_ids(text)))


NOTHING = Erc()


def stored_erc(depository: Depository, ark: str, version: int | None = None) -> Erc:
    """Read the description that a version of an object has, or the newest."""
    content = depository.read_file(ark, _STORED, version)
    return NOTHING if content is None else read_erc(content, _STORED)


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
    given = {label: [v for v in each if v and v != UNASSIGNED] for label, each in values.items()}
    return Erc(
        who=_joined(given.get("who")),
        what=_joined(given.get("what")),
        when=_joined(given.get("when")),
        places=tuple(dict.fromkeys(given.get("where", ()))),
    )


def _elements(text: str, path: str) -> Iterator[tuple[str, str]]:
    """Each label, in lower case, with its value."""
    lines: list[tuple[int, str]] = []
    for number, line in enumerate(re.split("\r\n?|\n", text), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0] in " \t" and lines:
            first, begun = lines[-1]
            lines[-1] = first, f"{begun} {line.strip()}"
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
