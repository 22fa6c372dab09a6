"""Checkm manifests written and read back, names that are refused, and arbitrary bytes."""

import re

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.errors import Invalid
from penstock.ingest.intake.checkm import PROFILES, SIZE_MAX, CheckmRow, ManifestKind, parse, write
from penstock.ingest.intake.validation import NAME_BYTES_MAX, SEGMENT_BYTES_MAX, name_fault

BATCHES = [kind for kind in ManifestKind if kind is not ManifestKind.OBJECT]
DIGEST_CHARS = {"md5": 32, "sha-1": 40, "sha-256": 64, "sha-384": 96, "sha-512": 128}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a", None),
        ("a/b c/é.txt", None),
        ("...", None),
        ("a/..b", None),
        ("s" * SEGMENT_BYTES_MAX, None),
        ("", "is empty"),
        ("/a", "is absolute"),
        ("..", "leaves its folder by '..'"),
        ("a/../b", "leaves its folder by '..'"),
        ("./a", "has a '.' between its slashes"),
        ("a//b", "has nothing between two slashes or after the last"),
        ("a/", "has nothing between two slashes or after the last"),
        ("a ", "begins or ends with a blank"),
        ("a/b\u3000", "begins or ends with a blank"),
        (" a", "begins or ends with a blank"),
        ("a /b", None),
        ("a\\b", "has a backslash"),
        ("a\0b", "has the control character '\\x00'"),
        ("a\nb", "has the control character '\\n'"),
        ("a\x7f", "has the control character '\\x7f'"),
        ("a\x85", "has the control character '\\x85'"),
        ("a\udce9", "cannot be written as UTF-8"),
        ("é" * 128, "has a part of 256 bytes, more than 255"),
        ("ab/" * 1365 + "ab", "has 4097 bytes, more than 4096"),
    ],
)
def test_a_name_that_could_leave_its_folder_or_cannot_be_a_file_is_refused(
    name: str, reason: str | None
) -> None:
    assert name_fault(name) == reason


def test_a_name_of_exactly_the_longest_size_is_allowed() -> None:
    name = "ab/" * 1365 + "a"
    assert len(name) == NAME_BYTES_MAX
    assert name_fault(name) is None


def is_plain(text: str) -> bool:
    """Whether a column can hold this text: no blanks at its ends and no control characters."""
    return text == text.strip() and not re.search("[\x00-\x08\x0a-\x1f\x7f]", text)


PIECES = st.sampled_from(["|", "%", "25", "7C", "7c", "%7C", "%257C", "#", "a", "é", " ", "\u2028"])
TEXTS = (
    st.one_of(
        st.lists(PIECES, min_size=1, max_size=8).map("".join), st.text(min_size=1, max_size=60)
    )
    .filter(is_plain)
    .filter(bool)
)
NAMES = TEXTS.filter(lambda name: name_fault(name) is None)
DIGESTS = st.sampled_from(sorted(DIGEST_CHARS)).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.text("0123456789abcdef", min_size=DIGEST_CHARS[name], max_size=DIGEST_CHARS[name]),
    )
)
URLS = st.builds(
    "{}{}".format,
    st.sampled_from(["http://h/", "https://u@h:1/x?", "s3://b/", "file:///", "payload:x"]),
    st.text("ab/%7C?#&=é", max_size=9),
)

ARKS = st.from_regex(r"ark:/[0-9]{5}/[a-z0-9]{1,20}", fullmatch=True)


@st.composite
def rows(draw: st.DrawFn) -> CheckmRow:
    algorithm, digest = draw(st.none() | DIGESTS) or (None, None)
    return CheckmRow(
        line=0,
        url=draw(URLS),
        algorithm=algorithm,
        digest=digest,
        size=draw(st.none() | st.integers(0, SIZE_MAX)),
        name=draw(NAMES),
        modified=draw(st.none() | TEXTS),
        mime=draw(st.none() | TEXTS),
        primary_id=draw(st.none() | ARKS),
        local_id=draw(st.none() | TEXTS),
        creator=draw(st.none() | TEXTS),
        title=draw(st.none() | TEXTS),
        date=draw(st.none() | TEXTS),
    )


def without_lines(found: tuple[CheckmRow, ...]) -> list[CheckmRow]:
    return [msgspec.structs.replace(row, line=0) for row in found]


@given(st.sampled_from(BATCHES), st.lists(rows(), min_size=1, max_size=4))
def test_a_batch_manifest_is_read_back_as_it_was_written(
    kind: ManifestKind, wanted: list[CheckmRow]
) -> None:
    manifest = parse(write(kind, wanted), expect=kind)
    assert without_lines(manifest.rows) == wanted
    assert write(kind, manifest.rows) == write(kind, wanted)


@given(st.lists(rows(), min_size=1, max_size=4))
def test_an_object_manifest_is_read_back_as_it_was_written(wanted: list[CheckmRow]) -> None:
    apart = [
        msgspec.structs.replace(row, name=f"{number}/{row.name}")
        for number, row in enumerate(wanted)
    ]
    manifest = parse(write(ManifestKind.OBJECT, apart), expect=ManifestKind.OBJECT)
    assert without_lines(manifest.rows) == apart


def test_a_written_manifest_reads_as_depositors_write_them() -> None:
    row = CheckmRow(line=9, url="http://h/a", algorithm="md5", digest="0" * 32, name="x|y")
    assert write(ManifestKind.OBJECT, [row]).decode().splitlines() == [
        "#%checkm_0.7",
        f"#%profile | {PROFILES}mrt-ingest-manifest",
        "#%prefix | mrt: | http://merritt.cdlib.org/terms#",
        "#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#",
        "#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize"
        " | nfo:fileLastModified | nfo:fileName | mrt:mimeType",
        f"http://h/a | md5 | {'0' * 32} |  |  | x%7Cy",
        "#%eof",
    ]


GOOD = CheckmRow(line=0, url="http://h/first", name="first")
OTHERWISE = (
    "row 2 of the manifest would be read back otherwise; encode the URL, and "
    "leave out line breaks, blanks at the ends and empty texts"
)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (CheckmRow(line=0, url="http://h/a", name="b", title="x "), OTHERWISE),
        (CheckmRow(line=0, url="http://h/a", name="b", title=""), OTHERWISE),
        (CheckmRow(line=0, url="http://h/a", name=""), OTHERWISE),
        (CheckmRow(line=0, url="http://h/a|", name="b"), OTHERWISE),
        (CheckmRow(line=0, url="# no", name="b"), OTHERWISE),
        (CheckmRow(line=0, url="http://h/a\nhttp://h/b", name="b"), "the manifest has 3 rows"),
        (CheckmRow(line=0, url="http://h/a", name="b\n#%eof"), "line 9: '#%eof' comes after #%eof"),
        (
            CheckmRow(line=0, url="http://h/a", algorithm="MD5", digest="0" * 32, name="b"),
            OTHERWISE,
        ),
        (
            CheckmRow(line=0, url="http://h/a", name="../b"),
            "line 7: the name '../b' leaves its folder",
        ),
        (
            CheckmRow(line=0, url="http://h/a", name="first"),
            "line 7: the name 'first' is in line 6 too",
        ),
        (
            CheckmRow(line=0, url="http://h/a", name="b", title="\ud800"),
            "the manifest would hold half",
        ),
    ],
)
def test_rows_that_cannot_be_read_back_are_refused(row: CheckmRow, message: str) -> None:
    with pytest.raises(Invalid, match=f"^{re.escape(message)}"):
        write(ManifestKind.OBJECT, [GOOD, row])


def parses_or_is_invalid(content: bytes) -> bool:
    try:
        return bool(parse(content).rows)
    except Invalid as fault:
        return bool(re.match(r"line [0-9]+: |the manifest ", str(fault)))


@given(st.binary())
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe#\x00%\x00")
def test_arbitrary_bytes_are_refused_and_nothing_else_happens(content: bytes) -> None:
    assert parses_or_is_invalid(content)


LINES = st.lists(
    st.one_of(
        PIECES,
        st.sampled_from(
            [
                "|",
                "http://h/",
                "http://[",
                "//",
                "md5",
                "sha1",
                "..",
                "\x00",
                "99999999999999999999",
                "#%fields",
                "#%columns",
                "#%profile",
                "#%eof",
                "nfo:fileUrl",
                "title",
                "00000000000000000000000000000000",
            ]
        ),
        st.sampled_from([" | ", "\n", "\r\n"]),
        st.text(max_size=4),
    ),
    max_size=30,
).map("".join)


@given(LINES, st.sampled_from(["mrt-ingest-manifest", "mrt-batch-manifest"]))
@example("http://[::1%]/a", "mrt-batch-manifest")
@example("http://\u2100/a", "mrt-batch-manifest")
@example("http://h:port/a", "mrt-batch-manifest")
def test_arbitrary_rows_are_read_or_refused_and_nothing_else_happens(
    body: str, profile: str
) -> None:
    text = f"#%checkm_0.7\n#%profile | {profile}\n{body}\n#%eof\n"
    assert parses_or_is_invalid(text.encode())
