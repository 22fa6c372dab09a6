"""Checkm 0.7 manifests: depositors' lists of files or of objects.

`|` separates columns. In every column but the URL, `%7C` stands for `|`, `%257C` for the text `%7C`
and so on; no other percent sign has a meaning. A URL is stored as it is written: a `|` in it must
already be `%7C`. Columns are matched by the name after the `:`, with any prefix, because many
manifests declare no prefix.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise, zip_longest
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
from msgspec import Struct

from penstock.errors import Invalid
from penstock.ingest.archive.arks import read_ark, read_local_ids
from penstock.ingest.intake.digests import read_digest
from penstock.ingest.intake.validation import Faults, name_fault, one_of, quoted
from penstock.ingest.models import TEXT_CHARS_MAX, URL_CHARS_MAX

HEADER = "#%checkm_0.7"
EOF = "#%eof"
PROFILES = "http://uc3.cdlib.org/registry/ingest/manifest/"
SIZE_MAX = 2**63 - 1

_PREFIXES = {
    "mrt": "http://merritt.cdlib.org/terms#",
    "nfo": "http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#",
}
# The column of each field, in the order in which columns are written.
_COLUMNS = {
    "url": "nfo:fileUrl",
    "algorithm": "nfo:hashAlgorithm",
    "digest": "nfo:hashValue",
    "size": "nfo:fileSize",
    "modified": "nfo:fileLastModified",
    "name": "nfo:fileName",
    "mime": "mrt:mimeType",
    "primary_id": "mrt:primaryIdentifier",
    "local_id": "mrt:localIdentifier",
    "creator": "mrt:creator",
    "title": "mrt:title",
    "date": "mrt:date",
}
_FIELDS = {column.partition(":")[2].casefold(): field for field, column in _COLUMNS.items()}
_OBJECT_FIELDS = tuple(_COLUMNS)[:7]
_BATCH_FIELDS = tuple(field for field in _COLUMNS if field != "mime")
_NUMBER = re.compile("[0-9]{1,19}")
_SCHEME = re.compile("[A-Za-z][A-Za-z0-9+.-]*:.")
_SECRETS = re.compile("(?<=//)[^/]*@|[?#].*", re.DOTALL)
_PIPE = re.compile(r"%((?:25)*7[Cc])")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")

_Lines = list[tuple[int, str]]


class ManifestKind(StrEnum):
    """The kind of rows in a manifest."""

    OBJECT = "object_manifest"
    MANIFESTS = "manifest_of_manifests"
    CONTAINERS = "manifest_of_containers"
    FILES = "manifest_of_files"


_KINDS = {
    "mrt-ingest-manifest": ManifestKind.OBJECT,
    "mrt-batch-manifest": ManifestKind.MANIFESTS,
    "mrt-container-batch-manifest": ManifestKind.CONTAINERS,
    "mrt-single-file-batch-manifest": ManifestKind.FILES,
}


class CheckmRow(Struct, frozen=True, kw_only=True):
    """One row: a file of the object or, in a batch manifest, an object."""

    line: int
    url: str
    algorithm: str | None = None
    digest: str | None = None
    size: int | None = None
    modified: str | None = None
    name: str
    mime: str | None = None
    primary_id: str | None = None
    local_id: str | None = None
    creator: str | None = None
    title: str | None = None
    date: str | None = None


class CheckmManifest(Struct, frozen=True):
    """A complete and valid manifest."""

    kind: ManifestKind
    profile: str
    rows: tuple[CheckmRow, ...]


def parse(
    content: bytes, *, rows_max: int = 1_000_000, expect: ManifestKind | None = None
) -> CheckmManifest:
    """Parse a manifest; raise Invalid, which names each faulty line."""
    lines = _lines(content)
    first = next((at for at, (_, text) in enumerate(lines) if text[0] != "#"), len(lines))
    profile, kind, fields = _parse_head(lines[:first])
    if expect is not None and kind != expect:
        raise Invalid(f"the manifest is of the kind {kind}, not {expect}; submit it as what it is")
    rows_found = sum(text[0] != "#" for _, text in lines[first:])
    if not rows_found:
        raise Invalid("the manifest has no rows; list at least one file")
    if rows_found > rows_max:
        raise Invalid(f"the manifest has {rows_found} rows; split it, {rows_max} are allowed")
    faults = Faults()
    rows = list(_rows(lines[first:], fields, faults))
    if kind is ManifestKind.OBJECT:
        _check_places(rows, faults)
    faults.refuse()
    return CheckmManifest(kind, profile, tuple(rows))


def write(kind: ManifestKind, rows: Sequence[CheckmRow]) -> bytes:
    """Write a manifest that parse() reads back as equal rows, except for the line numbers."""
    used = {field for row in rows for field in _COLUMNS if getattr(row, field) is not None}
    fields = [field for field in _COLUMNS if field in used or field in _standard(kind)]
    name = next(name for name in _KINDS if _KINDS[name] is kind)
    lines = [HEADER, f"#%profile | {PROFILES}{name}"]
    lines += [f"#%prefix | {prefix}: | {url}" for prefix, url in _PREFIXES.items()]
    lines.append(" | ".join(["#%fields", *(_COLUMNS[field] for field in fields)]))
    lines += [" | ".join(_column(row, field) for field in fields).rstrip(" |") for row in rows]
    try:
        content = "\n".join([*lines, EOF, ""]).encode()
    except UnicodeEncodeError:
        raise Invalid("the manifest would hold half a surrogate pair; correct the text") from None
    _check_same(rows, parse(content, rows_max=len(rows)).rows)
    return content


def _lines(content: bytes) -> _Lines:
    """Return the lines between header and end that are not blank, with their numbers."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = fault.object[: fault.start].count(b"\n") + 1
        raise Invalid(f"the manifest is not UTF-8 in line {line}; save it as UTF-8") from None
    numbered = enumerate(map(str.strip, text.split("\n")), start=1)
    lines = [(line, text) for line, text in numbered if text]
    if not lines or lines[0][1].casefold() != HEADER:
        raise Invalid(f"the manifest does not begin with a line {HEADER}; put it at the top")
    end = next((at for at, (_, text) in enumerate(lines) if text.casefold() == EOF), None)
    if end is None:
        raise Invalid(f"the manifest is cut off: it has no line {EOF}; send it again, whole")
    if end + 1 < len(lines):
        line, text = lines[end + 1]
        raise Invalid(f"line {line}: {quoted(text)} comes after {EOF}; remove one of the two")
    return lines[1:end]


def _parse_head(lines: _Lines) -> tuple[str, ManifestKind, Sequence[str]]:
    """Parse the lines above the first row: the profile, its kind and the columns."""
    profile: str | None = None
    kind = ManifestKind.OBJECT
    fields: Sequence[str] | None = None
    faults = Faults()
    for line, text in lines:
        directive, values = _directive(text)
        with faults.of(line):
            if directive == "#%profile":
                if profile is not None:
                    raise Invalid("a second #%profile; keep one")
                profile = values[0] if values else ""
                kind = _parse_profile(profile)
            elif directive == "#%fields":
                if fields is not None:
                    raise Invalid("a second #%fields; keep one")
                fields = ()
                fields = _parse_fields(values)
    faults.refuse()
    if profile is None:
        raise Invalid(
            f"the manifest has no #%profile above its rows; "
            f"write for example #%profile | {PROFILES}{next(iter(_KINDS))}"
        )
    return profile, kind, fields or _standard(kind)


def _standard(kind: ManifestKind) -> tuple[str, ...]:
    return _OBJECT_FIELDS if kind is ManifestKind.OBJECT else _BATCH_FIELDS


def _directive(text: str) -> tuple[str, list[str]]:
    """Return the name and values of a `#%` line; older manifests write `#%columns`."""
    name, *values = (value.strip() for value in text.split("|"))
    name = name.casefold()
    return "#%fields" if name == "#%columns" else name, values


def _parse_profile(profile: str) -> ManifestKind:
    kind = _KINDS.get(profile.rpartition("/")[2])
    if kind is None:
        raise Invalid(f"profile {quoted(profile)} is unknown; use {PROFILES} and {one_of(_KINDS)}")
    return kind


def _parse_fields(values: list[str]) -> list[str]:
    while values and not values[-1]:
        values.pop()
    fields: list[str] = []
    for value in values:
        field = _FIELDS.get(value.rpartition(":")[2].strip().casefold())
        if field is None:
            raise Invalid(f"column {quoted(value)} is unknown; use {one_of(_COLUMNS.values())}")
        if field in fields:
            raise Invalid(f"column {quoted(value)} is there twice; keep one")
        fields.append(field)
    if "url" not in fields:
        raise Invalid(f"#%fields has no column {_COLUMNS['url']}; add it")
    return fields


def _rows(lines: _Lines, fields: Sequence[str], faults: Faults) -> Iterator[CheckmRow]:
    """Yield the valid rows, and collect the faults of the others."""
    for line, text in lines:
        if faults.are_many:
            return
        if text[0] != "#":
            try:
                yield _parse_row(line, text, fields)
            except Invalid:
                _find_faults(line, text, fields, faults)
        elif _directive(text)[0] in {"#%profile", "#%fields"}:
            faults.add(line, f"{quoted(text)} stands below a row; move it above them all")


def _parse_row(line: int, text: str, fields: Sequence[str]) -> CheckmRow:
    column = _columns(text, fields)
    algorithm, digest = read_digest(column.get("algorithm"), column.get("digest"))
    return CheckmRow(
        line=line,
        url=column.get("url", ""),
        algorithm=algorithm,
        digest=digest,
        size=_parse_size(column.get("size")),
        modified=column.get("modified"),
        name=_parse_name(column.get("name"), _split_url(column.get("url", ""))),
        mime=column.get("mime"),
        primary_id=_parse_ark(column.get("primary_id")),
        local_id=_parse_local_ids(column.get("local_id")),
        creator=column.get("creator"),
        title=column.get("title"),
        date=column.get("date"),
    )


def _find_faults(line: int, text: str, fields: Sequence[str], faults: Faults) -> None:
    """Collect all faults of a row."""
    with faults.of(line):
        column = _columns(text, fields)
        with faults.of(line):
            _parse_name(column.get("name"), _split_url(column.get("url", "")))
        with faults.of(line):
            read_digest(column.get("algorithm"), column.get("digest"))
        with faults.of(line):
            _parse_size(column.get("size"))
        with faults.of(line):
            _parse_ark(column.get("primary_id"))
        with faults.of(line):
            _parse_local_ids(column.get("local_id"))


def _columns(text: str, fields: Sequence[str]) -> dict[str, str]:
    """Return the values of a row that are not empty, by field."""
    if control := _CONTROL.search(text):
        raise Invalid(f"there is the control character {control[0]!r}; remove it")
    values = [value.strip() for value in text.split("|")]
    if any(values[len(fields) :]):
        raise Invalid(
            f"there are {len(values)} columns where {len(fields)} are declared; "
            "write a | inside a value as %7C"
        )
    for field, value in zip(fields, values, strict=False):
        chars_max = URL_CHARS_MAX if field == "url" else TEXT_CHARS_MAX
        if len(value) > chars_max:
            raise Invalid(
                f"{_COLUMNS[field]} has {len(value):,} characters; at most {chars_max:,} are taken"
            )
    return {
        field: value if field == "url" else _PIPE.sub(_decode_pipe, value)
        for field, value in zip(fields, values, strict=False)
        if value
    }


def _split_url(url: str) -> SplitResult:
    if not url:
        raise Invalid("the URL is missing; fill in the column nfo:fileUrl")
    quoted_url = quoted(_SECRETS.sub("", url))
    if not _SCHEME.match(url):
        raise Invalid(f"the URL {quoted_url} is not absolute; begin it with https:// or the like")
    if re.search(r"\s", url):
        raise Invalid(f"the URL {quoted_url} has a blank in it; write a blank as %20")
    try:
        parts = urlsplit(url)
    except ValueError as fault:
        raise Invalid(f"the URL {quoted_url} cannot be read ({fault}); correct it") from None
    if parts.scheme in {"http", "https"} and not parts.hostname:
        raise Invalid(f"the URL {quoted_url} names no host; write it whole")
    return parts


def _parse_size(size: str | None) -> int | None:
    if size is None:
        return None
    if not _NUMBER.fullmatch(size) or int(size) > SIZE_MAX:
        raise Invalid(f"the size {quoted(size)} is not a number of bytes; write digits only")
    return int(size)


def _parse_ark(ark: str | None) -> str | None:
    return None if ark is None else read_ark(ark)


def _parse_local_ids(text: str | None) -> str | None:
    read_local_ids(text)
    return text


def _parse_name(name: str | None, url: SplitResult) -> str:
    """Return the row's name or, if it has none, the last segment of the URL's path."""
    if name is None:
        name = unquote(url.path.rpartition("/")[2])
        if not name:
            raise Invalid("there is no name, and the URL ends in none; fill in nfo:fileName")
    if reason := name_fault(name):
        raise Invalid(f"the name {quoted(name)} {reason}; give the file another name")
    return name


def _check_places(rows: Iterable[CheckmRow], faults: Faults) -> None:
    """Find two files with one path, and a file whose path is the folder of another file."""
    # NUL is in no name and sorts first, so the content of a folder sorts right after its name.
    places = sorted((row.name.replace("/", "\0"), row.line, row.name) for row in rows)
    way_out = "give one of the two files another name"
    for (place, line, name), (next_place, next_line, next_name) in pairwise(places):
        if place == next_place:
            clash = f"the name {quoted(name)} is in line {line} too"
            faults.add(next_line, f"{clash}; {way_out}")
        elif next_place.startswith(place + "\0"):
            what = f"{quoted(name)} (line {line}) is a folder of {quoted(next_name)}"
            faults.add(max(line, next_line), f"{what} (line {next_line}); {way_out}")


def _column(row: CheckmRow, field: str) -> str:
    value = getattr(row, field)
    if value is None:
        return ""
    if field == "url":
        return str(value)
    return _PIPE.sub(r"%25\1", str(value)).replace("|", "%7C")


def _decode_pipe(pipe: re.Match[str]) -> str:
    code = pipe[1]
    return "%" + code[2:] if code.startswith("25") else "|"


def _check_same(wanted: Sequence[CheckmRow], found: Sequence[CheckmRow]) -> None:
    for number, (want, have) in enumerate(zip_longest(wanted, found), start=1):
        if not (want and have) or msgspec.structs.replace(want, line=have.line) != have:
            raise Invalid(
                f"row {number} of the manifest would be read back otherwise; encode the URL, and "
                "leave out line breaks, blanks at the ends and empty texts"
            )
