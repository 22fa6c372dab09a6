"""Checkm manifests: what is read from them, what is refused and how the refusal names the line."""

import pytest

from penstock.errors import Invalid
from penstock.ingest.intake.checkm import (
    PROFILES,
    SIZE_MAX,
    CheckmManifest,
    CheckmRow,
    ManifestKind,
    parse,
)
from penstock.ingest.intake.validation import FAULTS_MAX

OBJECT = f"#%checkm_0.7\n#%profile | {PROFILES}mrt-ingest-manifest\n"
FILES = f"#%checkm_0.7\n#%profile | {PROFILES}mrt-single-file-batch-manifest\n"
MD5 = "0b21c6d48e815dd537d42dc1cfac0111"
COLUMNS = (
    "nfo:fileUrl, nfo:hashAlgorithm, nfo:hashValue, nfo:fileSize, nfo:fileLastModified, "
    "nfo:fileName, mrt:mimeType, mrt:primaryIdentifier, mrt:localIdentifier, mrt:creator, "
    "mrt:title or mrt:date"
)
KINDS = {
    "mrt-ingest-manifest": ManifestKind.OBJECT,
    "mrt-batch-manifest": ManifestKind.MANIFESTS,
    "mrt-container-batch-manifest": ManifestKind.CONTAINERS,
    "mrt-single-file-batch-manifest": ManifestKind.FILES,
}


def rows_of(text: str) -> tuple[CheckmRow, ...]:
    return parse(text.encode()).rows


def object_row(row: str) -> CheckmRow:
    """The one row of an object manifest; it is in line 3."""
    return rows_of(f"{OBJECT}{row}\n#%eof\n")[0]


def refusal(content: bytes, *, rows_max: int = 10, expect: ManifestKind | None = None) -> str:
    with pytest.raises(Invalid) as caught:
        parse(content, rows_max=rows_max, expect=expect)
    return str(caught.value)


def test_an_object_manifest_as_depositors_write_it() -> None:
    text = (
        "#%checkm_0.7\n"
        f"#%profile | {PROFILES}mrt-ingest-manifest\n"
        "#%prefix | mrt: | http://merritt.cdlib.org/terms#\n"
        "#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n"
        "#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize"
        " | nfo:fileLastModified | nfo:fileName | mrt:mimeType\n"
        f"https://example.org/a.jpg | MD5 | {MD5.upper()} | 12 | 2009 | x/a.jpg | image/jpeg\n"
        "\n# a comment\n"
        "https://example.org/b%20c.txt\n"
        "#%eof\n"
    )
    assert parse(text.encode()) == CheckmManifest(
        ManifestKind.OBJECT,
        f"{PROFILES}mrt-ingest-manifest",
        (
            CheckmRow(
                line=6,
                url="https://example.org/a.jpg",
                algorithm="md5",
                digest=MD5,
                size=12,
                modified="2009",
                name="x/a.jpg",
                mime="image/jpeg",
            ),
            CheckmRow(line=9, url="https://example.org/b%20c.txt", name="b c.txt"),
        ),
    )


def test_a_batch_manifest_has_an_object_in_each_row() -> None:
    row = "s3://b/f.zip | | | | | f.zip | ark:/99999/fk4 | loc 1 | Seneca | The Store | 2009 |"
    assert rows_of(f"{FILES}{row}\n{row}\n#%eof") == tuple(
        CheckmRow(
            line=line,
            url="s3://b/f.zip",
            name="f.zip",
            primary_id="ark:/99999/fk4",
            local_id="loc 1",
            creator="Seneca",
            title="The Store",
            date="2009",
        )
        for line in (3, 4)
    )


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
@pytest.mark.parametrize("place", [PROFILES, "http://uc3.cdlib.org/registry/mrt/", ""])
def test_the_last_part_of_the_profile_gives_the_kind(
    name: str, kind: ManifestKind, place: str
) -> None:
    text = f"#%checkm_0.7\n#%profile | {place}{name}\nhttp://h/a\n#%eof\n"
    assert parse(text.encode(), expect=kind).kind == kind


@pytest.mark.parametrize(
    "declared",
    [
        "#%fields | nfo:fileSize | mrt:title | nfo:fileUrl |",
        "#%FIELDS | FileSize|x:TITLE|other:fileURL",
        "#%columns | nfo:fileSize | mrt:title | nfo:fileUrl",
    ],
)
def test_declared_columns_decide_the_order(declared: str) -> None:
    text = f"{OBJECT}{declared}\n| About | http://h/a\n7 | | http://h/b\n#%eof\n"
    assert rows_of(text) == (
        CheckmRow(line=4, url="http://h/a", name="a", title="About"),
        CheckmRow(line=5, url="http://h/b", name="b", size=7),
    )


@pytest.mark.parametrize("change", ["\ufeff{}", "\n\n{}", "{}\n \n"])
def test_marks_and_blank_lines_around_a_manifest_do_no_harm(change: str) -> None:
    rows = rows_of(change.format(f"{OBJECT}http://h/a\n#%EOF"))
    assert [(row.url, row.name) for row in rows] == [("http://h/a", "a")]


def test_line_ends_of_windows_are_read_as_those_of_unix() -> None:
    text = f"{OBJECT}http://h/a | | | 3\nhttp://h/b\n#%eof\n"
    assert parse(text.replace("\n", "\r\n").encode()) == parse(text.encode())


@pytest.mark.parametrize(
    ("spelling", "algorithm", "chars"),
    [
        ("md5", "md5", 32),
        ("SHA1", "sha-1", 40),
        ("sha-1", "sha-1", 40),
        ("Sha256", "sha-256", 64),
        ("SHA-256", "sha-256", 64),
        ("sha384", "sha-384", 96),
        ("sha-512", "sha-512", 128),
    ],
)
def test_algorithms_have_one_name_however_they_are_spelt(
    spelling: str, algorithm: str, chars: int
) -> None:
    row = object_row(f"http://h/a | {spelling} | {'A' * chars}")
    assert (row.algorithm, row.digest) == (algorithm, "a" * chars)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a%7Cb", "a|b"),
        ("a%7cb", "a|b"),
        ("a%257Cb", "a%7Cb"),
        ("a%25257Cb", "a%257Cb"),
        ("100%25 %20 %2", "100%25 %20 %2"),
    ],
)
def test_a_bar_in_a_value_is_written_as_7c_and_nothing_else_is_encoded(
    written: str, name: str
) -> None:
    assert object_row(f"http://h/a%7Cb | | | | | {written}") == CheckmRow(
        line=3, url="http://h/a%7Cb", name=name
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://h/x/a%20b.txt?c=d/e#f/g", "a b.txt"),
        ("payload:0b21/data.zip", "data.zip"),
        ("file:///data/in/%C3%A9", "é"),
    ],
)
def test_a_file_without_a_name_gets_the_last_url_segment(url: str, name: str) -> None:
    assert object_row(url).name == name


FAULTY_ROWS = [
    ("| | | | | a", "the URL is missing; fill in the column nfo:fileUrl"),
    ("a/b.txt", "the URL 'a/b.txt' is not absolute; begin it with https:// or the like"),
    ("//h/b?k=1", "the URL '//h/b' is not absolute; begin it with https:// or the like"),
    ("http://u:p@h/a b?key=1", "the URL 'http://h/a b' has a blank in it; write a blank as %20"),
    ("http:///a", "the URL 'http:///a' names no host; write it whole"),
    ("http://[a", "the URL 'http://[a' cannot be read (Invalid IPv6 URL); correct it"),
    (
        "http://h/a | sha-3 | 00",
        "algorithm 'sha-3' is unknown; "
        "use adler-32, crc-32, md5, sha-1, sha-256, sha-384, sha-512 or sha-512/256",
    ),
    ("http://h/a | md5", "there is the algorithm md5 but no digest; fill in nfo:hashValue"),
    (
        f"http://h/a | | {MD5}",
        "there is a digest but no algorithm; fill in nfo:hashAlgorithm",
    ),
    ("http://h/a | md5 | xyz", "the md5 digest 'xyz' is not hexadecimal; correct it"),
    (
        f"http://h/a | sha1 | {MD5}",
        f"the sha-1 digest '{MD5}' has 32 characters; it must have 40",
    ),
    ("http://h/a | | | -1", "the size '-1' is not a number of bytes; write digits only"),
    ("http://h/a | | | 1 kB", "the size '1 kB' is not a number of bytes; write digits only"),
    ("http://h/a | | | ١", "the size '١' is not a number of bytes; write digits only"),
    (
        f"http://h/a | | | {SIZE_MAX + 1}",
        f"the size '{SIZE_MAX + 1}' is not a number of bytes; write digits only",
    ),
    (
        f"http://h/a | | | {'9' * 5000}",
        f"the size '{'9' * 64}…' is not a number of bytes; write digits only",
    ),
    (
        "http://h/ | md5 | " + MD5,
        "there is no name, and the URL ends in none; fill in nfo:fileName",
    ),
    (
        "http://h/x/%2e%2e",
        "the name '..' leaves its folder by '..'; give the file another name",
    ),
    (
        "http://h/a | | | | | ../a",
        "the name '../a' leaves its folder by '..'; give the file another name",
    ),
    ("http://h/a | | | | | /a", "the name '/a' is absolute; give the file another name"),
    ("http://h/a\x00", "there is the control character '\\x00'; remove it"),
    (
        "http://h/a | | | | | a | text/plain | b | ",
        "there are 9 columns where 7 are declared; write a | inside a value as %7C",
    ),
]


@pytest.mark.parametrize(("row", "message"), FAULTY_ROWS)
def test_a_faulty_row_is_refused_by_its_line(row: str, message: str) -> None:
    text = f"{OBJECT}http://h/first\n\n{row}\n#%eof\n"
    assert refusal(text.encode()) == f"line 5: {message}"


NO_ARKS = ["ark123", "../../x", "ark:/99999/fk4 b c", "ark:/99999/../x", "doi:10.1/x", "ark:/9/x"]


@pytest.mark.parametrize("given", NO_ARKS)
def test_a_primary_id_that_is_no_ark_is_refused_by_its_line(given: str) -> None:
    text = f"{FILES}http://h/first\nhttp://h/a | | | -1 | | | {given}\n#%eof\n"
    assert refusal(text.encode()).split("\n") == [
        f"line 4: '{given}' is not an ARK; write it like ark:/99999/fk4rx9d523",
        "line 4: the size '-1' is not a number of bytes; write digits only",
    ]


def test_a_primary_id_has_one_spelling_however_it_is_written() -> None:
    rows = "".join(f"http://h/a | | | | | | {label}99999/fk4b\n" for label in ("ark:", "ark:/"))
    assert [row.primary_id for row in rows_of(f"{FILES}{rows}#%eof")] == ["ark:/99999/fk4b"] * 2


def test_all_faults_are_reported_by_line() -> None:
    rows = "http://h/a | md5 | xyz | -1 | | ../a\nhttp://h/b\nb\nhttp://h/b\n#%fields | fileUrl\n"
    assert refusal(f"{OBJECT}{rows}#%eof\n".encode()).split("\n") == [
        "line 3: the md5 digest 'xyz' is not hexadecimal; correct it",
        "line 3: the name '../a' leaves its folder by '..'; give the file another name",
        "line 3: the size '-1' is not a number of bytes; write digits only",
        "line 5: the URL 'b' is not absolute; begin it with https:// or the like",
        "line 6: the name 'b' is in line 4 too; give one of the two files another name",
        "line 7: '#%fields | fileUrl' stands below a row; move it above them all",
    ]


def test_very_many_faults_are_cut() -> None:
    rows = "".join(f"no-url-{n}\n" for n in range(1000))
    told = refusal(f"{OBJECT}{rows}#%eof\n".encode(), rows_max=1000).split("\n")
    assert len(told) == FAULTS_MAX + 1
    assert told[0].startswith("line 3: the URL 'no-url-0' is not absolute")
    assert told[FAULTS_MAX - 1].startswith(f"line {FAULTS_MAX + 2}: ")
    assert told[-1] == "and more: these are only the first"


def test_all_faults_of_a_head_are_reported() -> None:
    head = "#%checkm_0.7\n#%profile | x\n#%fields | nfo:colour\n#%fields | fileUrl\n"
    told = refusal(f"{head}http://h/a\n#%eof\n".encode()).split("\n")
    assert [line.partition(";")[0] for line in told] == [
        "line 2: profile 'x' is unknown",
        "line 3: column 'nfo:colour' is unknown",
        "line 4: a second #%fields",
    ]


BESIDE = "give one of the two files another name"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "a"], f"line 5: the name 'a' is in line 3 too; {BESIDE}"),
        (
            ["a", "b", "b", "a"],
            f"line 5: the name 'b' is in line 4 too; {BESIDE}\n"
            f"line 6: the name 'a' is in line 3 too; {BESIDE}",
        ),
        (["a", "a-b", "a/b"], f"line 5: 'a' (line 3) is a folder of 'a/b' (line 5); {BESIDE}"),
        (["x/y/z", "x/y"], f"line 4: 'x/y' (line 4) is a folder of 'x/y/z' (line 3); {BESIDE}"),
        (["a/b/c", "a!", "a"], f"line 5: 'a' (line 5) is a folder of 'a/b/c' (line 3); {BESIDE}"),
    ],
)
def test_two_files_at_one_place_are_refused_with_both_lines(names: list[str], message: str) -> None:
    rows = "".join(f"http://h/f | | | | | {name}\n" for name in names)
    assert refusal(f"{OBJECT}{rows}#%eof\n".encode()) == message
    assert len(rows_of(f"{FILES}{rows}#%eof\n")) == len(names)


def test_names_that_only_begin_alike_are_files_of_their_own() -> None:
    names = ["a", "a b", "a-b/c", "A", "ab", "a.b"]
    rows = "".join(f"http://h/f | | | | | {name}\n" for name in names)
    assert [row.name for row in rows_of(f"{OBJECT}{rows}#%eof")] == names


ROW = "http://h/a\n"
NO_HEADER = "the manifest does not begin with a line #%checkm_0.7; put it at the top"
NO_PROFILE = (
    "the manifest has no #%profile above its rows; "
    f"write for example #%profile | {PROFILES}mrt-ingest-manifest"
)
KNOWN = (
    f"use {PROFILES} and mrt-ingest-manifest, mrt-batch-manifest, "
    "mrt-container-batch-manifest or mrt-single-file-batch-manifest"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", NO_HEADER),
        ("\n\n", NO_HEADER),
        (OBJECT.replace("0.7", "0.8") + ROW + "#%eof", NO_HEADER),
        (ROW + OBJECT + "#%eof", NO_HEADER),
        (
            OBJECT + ROW + "http://h/b | md5 | 0b21",
            "the manifest is cut off: it has no line #%eof; send it again, whole",
        ),
        (OBJECT + "#%eof", "the manifest has no rows; list at least one file"),
        ("#%checkm_0.7\n#%eof", NO_PROFILE),
        (f"#%checkm_0.7\n{ROW}#%eof", NO_PROFILE),
        ("#%checkm_0.7\n#%profile\n#%eof", f"line 2: profile '' is unknown; {KNOWN}"),
        (
            f"#%checkm_0.7\n#%profile | http://x/mrt-mystery\n{ROW}#%eof",
            f"line 2: profile 'http://x/mrt-mystery' is unknown; {KNOWN}",
        ),
        (OBJECT + OBJECT + ROW + "#%eof", "line 4: a second #%profile; keep one"),
        (
            OBJECT + "#%fields | fileUrl\n#%fields | fileUrl\n" + ROW + "#%eof",
            "line 4: a second #%fields; keep one",
        ),
        (
            OBJECT + "#%fields | nfo:fileUrl | nfo:colour\n" + ROW + "#%eof",
            f"line 3: column 'nfo:colour' is unknown; use {COLUMNS}",
        ),
        (
            OBJECT + "#%fields | nfo:fileUrl | | mrt:date\n" + ROW + "#%eof",
            f"line 3: column '' is unknown; use {COLUMNS}",
        ),
        (
            OBJECT + "#%fields | nfo:fileUrl | mrt:fileurl\n" + ROW + "#%eof",
            "line 3: column 'mrt:fileurl' is there twice; keep one",
        ),
        (
            OBJECT + "#%fields | nfo:fileName\n" + ROW + "#%eof",
            "line 3: #%fields has no column nfo:fileUrl; add it",
        ),
        (
            OBJECT + ROW + "#%fields | nfo:fileUrl\n#%eof",
            "line 4: '#%fields | nfo:fileUrl' stands below a row; move it above them all",
        ),
        (
            OBJECT + ROW + "#%eof\n\n" + ROW,
            "line 6: 'http://h/a' comes after #%eof; remove one of the two",
        ),
    ],
)
def test_a_faulty_manifest_is_refused(text: str, message: str) -> None:
    assert refusal(text.encode()) == message


def test_a_manifest_in_another_encoding_is_refused_by_its_line() -> None:
    content = f"{OBJECT}http://h/a | | | | | é".encode("latin-1")
    assert refusal(content) == "the manifest is not UTF-8 in line 3; save it as UTF-8"


def test_a_manifest_with_too_many_rows_is_refused() -> None:
    content = (FILES + 3 * ROW + "# not a row\n#%eof").encode()
    assert len(parse(content, rows_max=3).rows) == 3
    assert refusal(content, rows_max=2) == ("the manifest has 3 rows; split it, 2 are allowed")


def test_a_manifest_of_another_kind_than_expected_is_refused() -> None:
    content = (FILES + ROW + "#%eof").encode()
    assert refusal(content, expect=ManifestKind.OBJECT) == (
        "the manifest is of the kind manifest_of_files, not object_manifest; "
        "submit it as what it is"
    )
