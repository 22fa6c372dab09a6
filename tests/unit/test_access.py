"""Keys and the audit log, on both databases."""

from collections.abc import Iterator

import pytest

from penstock.access import audit
from penstock.access.keys import CACHE_SECONDS, LOCAL, Keys
from penstock.clock import Micros
from penstock.db import Database, open_database
from penstock.errors import Conflict, Forbidden, Invalid, NotFound, Unauthorized
from penstock.schema.admin import KeyRole

AT: Micros = 1_800_000_000_000_000


class Stopwatch:
    """A clock in seconds that a test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = open_database(database_url)
    opened.migrate()
    yield opened
    opened.close()


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(database, clock=lambda: AT)


def test_a_new_keys_token_is_accepted(keys: Keys) -> None:
    created = keys.create("etl", KeyRole.WRITER, namespace="food", who="local")
    key = keys.authenticate(created.token)
    assert (key.id, key.name, key.role, key.namespace) == (created.key.id, "etl", "writer", "food")
    assert created.token.startswith("pk_")


def test_only_the_digest_of_a_token_is_stored(database: Database, keys: Keys) -> None:
    token = keys.create("etl", KeyRole.WRITER, who="local").token
    with database.read() as tx:
        stored = repr(tx.fetch("keys_all")) + repr(audit.entries(tx, 9))
    assert token not in stored
    assert token not in repr(keys.listed())


def test_an_unknown_token_is_refused(keys: Keys) -> None:
    keys.create("etl", KeyRole.WRITER, who="local")
    for token in ("", "pk_", "pk_nonsense", "\udcff"):
        with pytest.raises(Unauthorized):
            keys.authenticate(token)


def test_a_server_refuses_a_key_it_revoked_immediately(keys: Keys) -> None:
    token = keys.create("etl", KeyRole.WRITER, who="local").token
    keys.authenticate(token)
    revoked = keys.revoke("etl", who="boss")
    assert revoked.revoked_at == AT
    with pytest.raises(Unauthorized):
        keys.authenticate(token)


def test_a_revocation_by_another_server_applies_within_seconds(database: Database) -> None:
    watch = Stopwatch()
    here = Keys(database, clock=lambda: AT, seconds=watch)
    elsewhere = Keys(database, clock=lambda: AT)
    token = here.create("etl", KeyRole.WRITER, who="local").token
    here.authenticate(token)
    elsewhere.revoke("etl", who="boss")
    assert here.remembered(token) is not None
    watch.now += CACHE_SECONDS + 0.001
    assert here.remembered(token) is None
    with pytest.raises(Unauthorized):
        here.authenticate(token)


def test_a_name_is_taken_until_its_key_is_revoked(keys: Keys) -> None:
    first = keys.create("etl", KeyRole.READER, who="local")
    with pytest.raises(Conflict, match="already"):
        keys.create("etl", KeyRole.ADMIN, who="local")
    keys.revoke("etl", who="local")
    second = keys.create("etl", KeyRole.ADMIN, who="local")
    assert [key.id for key in keys.listed()] == [second.key.id]
    assert {key.id for key in keys.listed(revoked=True)} == {first.key.id, second.key.id}


@pytest.mark.parametrize("name", ["", "  ", "x" * 256, "a\nb", "a\x00b", "local"])
def test_names_that_look_alike_are_refused(keys: Keys, name: str) -> None:
    with pytest.raises(Invalid):
        keys.create(name, KeyRole.READER, who="local")
    assert not keys.were_made()


def test_revoking_an_unknown_key_fails(keys: Keys) -> None:
    with pytest.raises(NotFound, match="no live key"):
        keys.revoke("ghost", who="local")


def test_creating_and_revoking_keys_is_audited(database: Database, keys: Keys) -> None:
    keys.create("etl", KeyRole.WRITER, namespace="food", who="boss")
    keys.revoke("etl", who="chief")
    with database.read() as tx:
        newest, oldest = audit.entries(tx, limit=10)
        assert audit.entries(tx, limit=1, offset=1) == [oldest]
    assert (oldest.who, oldest.action, oldest.target) == ("boss", "key create", "etl")
    assert oldest.detail == "role writer, namespace food"
    assert (newest.who, newest.action, newest.at) == ("chief", "key revoke", AT)


def test_a_failed_action_leaves_no_audit_entry(database: Database, keys: Keys) -> None:
    keys.create("etl", KeyRole.WRITER, who="boss")
    with pytest.raises(Conflict):
        keys.create("etl", KeyRole.WRITER, who="boss")
    with database.read() as tx:
        assert len(audit.entries(tx, limit=10)) == 1


def test_each_role_covers_those_before_it() -> None:
    covered = [[role.covers(needed) for needed in KeyRole] for role in KeyRole]
    assert covered == [[True, False, False], [True, True, False], [True, True, True]]
    with pytest.raises(Forbidden, match="reader"):
        LOCAL.__class__("", "r", KeyRole.READER, None).require_role(KeyRole.WRITER)


def test_a_namespace_key_has_no_access_to_others(keys: Keys) -> None:
    key = keys.authenticate(keys.create("t", KeyRole.ADMIN, namespace="food", who="local").token)
    key.require_namespace("food")
    with pytest.raises(Forbidden, match="food"):
        key.require_namespace("drink")
    with pytest.raises(Forbidden, match="spans namespaces"):
        key.require_every_namespace()
    LOCAL.require_namespace("anything")
    LOCAL.require_every_namespace()
