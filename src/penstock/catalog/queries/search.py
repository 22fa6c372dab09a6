"""Search for datasets and jobs by words and parts of names.

This module splits words, in ASCII and lower case, so that SQLite's and PostgreSQL's text search
index the same words. Parts of names are words of the same index that begin with a digit, as no
other word does: `3` with each suffix of a word, `2` with each pair of letters, `1` with each
letter. A text inside a word is the prefix of one of its suffixes. See docs/adr/0031-search-inside-
words.md.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from penstock.catalog.events.schema import Field, load_fields
from penstock.catalog.lineage.nodes import dataset_node, job_node
from penstock.catalog.queries.events import EARLIEST, LATEST
from penstock.catalog.rows import LATEST_RUN_STATES
from penstock.clock import Micros, format_time
from penstock.db import Transaction
from penstock.errors import Invalid
from penstock.schema.search import SearchResult, SearchResults

# PostgreSQL refuses a tsvector of more than a megabyte; names are far shorter than this.
BODY_CHARS_MAX = 100_000
WORD_CHARS_MAX = 64
QUERY_WORDS_MAX = 64
PART_LETTERS = 3  # shorter parts are looked up as a whole: they are prefixes of too many words
WALK_TIMES = 3  # the expected length of the walk if matches are spread evenly

_SEGMENT = re.compile(r"[\w-]+")
_RUN = re.compile(r"[^\W_]+")
_PIECE = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[^A-Z]+")


class _Language(Struct, frozen=True):
    """A query language of a database; words are letters and digits, so none needs quotes."""

    word: str
    beginning: str
    both: str
    either: str


_FTS5 = _Language('"{}"', '"{}"*', " AND ", " OR ")
_TSQUERY = _Language("'{}'", "'{}':*", " & ", " | ")


class SearchKind(StrEnum):
    """The kinds of search results."""

    DATASET = "DATASET"
    JOB = "JOB"


class SearchSort(StrEnum):
    """The order of search results."""

    NAME = "NAME"
    UPDATE_AT = "UPDATE_AT"  # last updated first


def search(
    tx: Transaction,
    q: str,
    *,
    kind: SearchKind | None = None,
    sort: SearchSort = SearchSort.NAME,
    limit: int = 10,
    offset: int = 0,
    namespace: str | None = None,
    before: Micros | None = None,
    after: Micros | None = None,
) -> SearchResults:
    """Return a page of visible datasets and jobs with every word of `q`.

    The last word may be a prefix of a word, or stand inside a word of a name. If nothing matches,
    so may every word: parts of common words are expensive. A query without words matches nothing.
    Times limit the last update, in [after, before).
    """
    terms = _terms(q)
    at_any_time = before is None and after is None
    by_name = sort == SearchSort.NAME and at_any_time
    of_all_jobs = kind == SearchKind.JOB and namespace is None and at_any_time
    found = SearchResults(0, [])
    for loose in dict.fromkeys((len(terms) - 1, 0) if terms else ()):
        asked = {
            "fts5": _expression(terms, loose, _FTS5) + (f' AND "0{kind}"' if kind else ""),
            "tsquery": _expression(terms, loose, _TSQUERY),
            "kind": kind,
            "namespace": namespace,
            "limit": limit,
            "offset": offset,
        }
        walked = _latest_jobs(tx, asked, limit, offset) if of_all_jobs and not by_name else None
        if walked is not None:
            return walked
        rows = tx.fetch(
            "search_by_name" if by_name else "search_by_time",
            **asked,
            after=EARLIEST if after is None else after,
            before=LATEST if before is None else before,
            sort=sort,
        )
        results = [_result(*row[1:]) for row in rows if row[1] is not None]
        found = SearchResults(rows[0][0], results)
        if found.total_count:
            break
    return found


def _latest_jobs(
    tx: Transaction, asked: dict[str, Any], limit: int, offset: int
) -> SearchResults | None:
    """Return the last updated jobs with the words, by a walk from the latest job back.

    Common words match early in the walk. Returns None if looking up each match is cheaper, or if
    the matches were not updated for a long time.
    """
    counted, tallies = tx.fetch_many(
        [("count_found_jobs", asked), ("read_tallies", {"kind": "JOB"})]
    )
    total, jobs = counted[0][0], sum(count for _, count in tallies)
    most = WALK_TIMES * (limit + offset) * jobs // max(total, 1)
    if not 0 < most < total:
        return None
    rows = tx.fetch("search_latest_jobs", **asked, states=LATEST_RUN_STATES, most=most)
    if len(rows) < min(limit, total - offset):
        return None
    return SearchResults(total, [_result(*row) for row in rows])


def search_body(
    namespace: str,
    name: str,
    description: str | None = None,
    fields_json: str = "[]",
    tags: str = "[]",
    *,
    field_tags: str = "{}",
    second_names: Iterable[str] = (),
) -> str:
    """Return all search words of a dataset or job; fields and tags are JSON, as in rows."""
    names = [name, *second_names]
    texts = [name, namespace, *second_names]
    texts += msgspec.json.decode(tags, type=list[str])
    for carried in msgspec.json.decode(field_tags, type=dict[str, list[str]]).values():
        texts += carried
    texts += _field_texts(load_fields(fields_json))
    texts.append(description or "")
    parts = (part for text in names for part in _parts(text))
    words = (word for text in texts for word in _words(text))
    body = " ".join(dict.fromkeys((*_words(name), *parts, *words)))
    if len(body) <= BODY_CHARS_MAX:
        return body
    return body[:BODY_CHARS_MAX].rpartition(" ")[0]


def _result(kind: str, namespace: str, name: str, updated_at: Micros) -> SearchResult:
    node = dataset_node if kind == SearchKind.DATASET else job_node
    return SearchResult(kind, name, format_time(updated_at), namespace, node(namespace, name))


class _Term(Struct, frozen=True):
    """A word of a query, and the word as a part of a name."""

    word: str
    part: str
    is_short: bool

    def strictly(self, language: _Language) -> str:
        """Return the term for the whole word."""
        return language.word.format(self.word)

    def loosely(self, language: _Language) -> str:
        """Return the term for a prefix, or for a part of a word in a name."""
        inside = language.word if self.is_short else language.beginning
        begun = language.beginning.format(self.word)
        return f"({begun}{language.either}{inside.format(self.part)})"


def _terms(q: str) -> list[list[_Term]]:
    """Return the terms of a query: each whole word, or its pieces if there are several.

    `ordersdaily` finds `ordersDaily`, and so do `orders` and `daily`.
    """
    runs: list[str] = list(dict.fromkeys(_RUN.findall(_plain(q))))
    pieces: dict[str, list[str]] = {run: _PIECE.findall(run) for run in runs}
    terms = [
        [_term(run), *(map(_term, pieces[run]) if len(pieces[run]) > 1 else ())] for run in runs
    ]
    if sum(map(len, terms)) > QUERY_WORDS_MAX:
        raise Invalid(f"the search has more than {QUERY_WORDS_MAX} words; leave some out")
    return terms


def _term(text: str) -> _Term:
    letters = _letters(text)
    size = min(len(letters), PART_LETTERS)
    return _Term(_word(text), _part(size, letters), is_short=size < PART_LETTERS)


def _expression(terms: list[list[_Term]], loose: int, language: _Language) -> str:
    """Return the expression for every term; from number `loose` on, also by parts."""
    alternatives = []
    for number, (whole, *pieces) in enumerate(terms):
        written = _Term.loosely if number >= loose else _Term.strictly
        term = written(whole, language)
        if pieces:
            others = language.both.join(written(piece, language) for piece in pieces)
            term += f"{language.either}({others})"
        alternatives.append(f"({term})")
    return language.both.join(alternatives)


def _parts(text: str) -> Iterator[str]:
    """Return the parts by which each word of a name is found from inside."""
    for run in _RUN.findall(_plain(text)):
        letters = _letters(run)
        for start in range(len(letters)):
            rest = letters[start:]
            yield _part(1, rest[:1])
            if len(rest) > 1:
                yield _part(2, rest[:2])
            if len(rest) >= PART_LETTERS:
                yield _part(PART_LETTERS, rest)


def _letters(run: str) -> list[str]:
    """Return the letters and digits of a word in lower case; transliterate other scripts."""
    letters = list(run.casefold())[:WORD_CHARS_MAX]
    return [letter if letter.isascii() else f"u{ord(letter):x}" for letter in letters]


def _part(size: int, letters: list[str]) -> str:
    return f"{size}{''.join(letters)[:WORD_CHARS_MAX]}"


def _words(text: str) -> Iterator[str]:
    for segment in _SEGMENT.findall(_plain(text)):
        runs: list[str] = _RUN.findall(segment)
        for run in runs:
            yield from _pieces(run)
            yield _word(run)
        if len(runs) > 1:
            yield _word("".join(runs))


def _pieces(run: str) -> list[str]:
    return [_word(piece) for piece in _PIECE.findall(run)]


def _plain(text: str) -> str:
    """Return the text without accents and with plain digits and letters."""
    if text.isascii():
        return text
    letters = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _word(part: str) -> str:
    """Return an ASCII letter followed by letters and digits: one word for both databases.

    PostgreSQL reads `8e43z4` as a number and a word, and other letters depend on its locale.
    Leading digits and letters of other scripts are therefore transliterated.
    """
    word = part.casefold()
    if not word.isascii():
        word = "".join(c if c.isascii() else f"u{ord(c):x}" for c in word)
    return (f"n{word}" if word[0].isdigit() else word)[:WORD_CHARS_MAX]


def _field_texts(fields: Iterable[Field]) -> Iterator[str]:
    for field in fields:
        yield field.name
        yield field.description or ""
        if isinstance(field.fields, tuple):
            yield from _field_texts(field.fields)
