"""Databases for tests: migrated once, then emptied or copied, which is faster than migrating."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from penstock.db import open_database
from tests.servers import PostgresServer

_USES_MAX = 100  # deleted rows leave dead space behind

# Triggers and references are off meanwhile, and the rows from migrations are restored. The function
# names every table, so each connection plans it once.
_PREPARE = """
CREATE SCHEMA kept;
DO $$
DECLARE name text; is_filled boolean; steps text := '';
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        steps := steps || format('DELETE FROM public.%I;', name);
        EXECUTE format('SELECT EXISTS (SELECT 1 FROM public.%I)', name) INTO is_filled;
        IF is_filled THEN
            EXECUTE format('CREATE TABLE kept.%I AS TABLE public.%I', name, name);
            steps := steps || format(
                'INSERT INTO public.%I OVERRIDING SYSTEM VALUE TABLE kept.%I;', name, name
            );
        END IF;
    END LOOP;
    EXECUTE format($function$
        CREATE FUNCTION kept.empty() RETURNS void LANGUAGE plpgsql AS $body$
        BEGIN
            SET LOCAL session_replication_role = replica;
            %s
            PERFORM setval(format('public.%%I', sequencename)::regclass, start_value, false)
                FROM pg_sequences WHERE schemaname = 'public';
        END $body$
    $function$, steps);
END $$;
"""
_CUT_OFF = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


class _Pooled:
    """A database, and the connection that empties it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.uses = 0
        self._connection = psycopg.connect(self.url, autocommit=True)
        self._connection.execute(_PREPARE)

    def empty(self) -> None:
        """Delete every row that a test wrote."""
        self._connection.execute(_CUT_OFF)
        self._connection.execute("SELECT kept.empty()")

    def close(self) -> None:
        self._connection.close()


class Pool:
    """Migrated databases of one PostgreSQL, and a migrated SQLite file to copy."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._migrated = ""
        self._idle: list[_Pooled] = []
        self._lent: dict[str, _Pooled] = {}

    def take(self) -> str:
        """Return the URL of an empty migrated database."""
        pooled = self._idle.pop() if self._idle else _Pooled(self.copy())
        self._lent[pooled.url] = pooled
        return pooled.url

    def give_back(self, url: str) -> None:
        """Return a database to the pool."""
        pooled = self._lent.pop(url)
        pooled.uses += 1
        if pooled.uses < _USES_MAX:
            pooled.empty()
            self._idle.append(pooled)
        else:
            self._drop(pooled)

    def copy(self) -> str:
        """Create a migrated database. The caller drops it."""
        if not self._migrated:
            self._migrated = self._server.create_database()
            migrate(self._migrated)
        return self._server.create_database(str(conninfo_to_dict(self._migrated)["dbname"]))

    def drop(self, url: str) -> None:
        """Drop a copy."""
        self._server.drop_database(url)

    def close(self) -> None:
        """Drop all databases."""
        if self._migrated:
            self._server.drop_database(self._migrated)
        for pooled in [*self._idle, *self._lent.values()]:
            self._drop(pooled)

    def _drop(self, pooled: _Pooled) -> None:
        pooled.close()
        self._server.drop_database(pooled.url)


def migrate(url: str) -> None:
    """Migrate a database to the current schema."""
    with closing(open_database(url)) as database:
        database.migrate()


_migrated: list[bytes] = []


def sqlite_database(path: Path) -> str:
    """Create a migrated SQLite database and return its URL."""
    if not _migrated:
        with TemporaryDirectory() as folder:
            path_of_database = Path(folder) / "penstock.db"
            migrate(f"sqlite:///{path_of_database}")
            _migrated.append(path_of_database.read_bytes())
    path.write_bytes(_migrated[0])
    return f"sqlite:///{path}"


@contextmanager
def migrated_database(kind: str, request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """Yield the URL of a migrated database of this kind for the caller alone."""
    if kind == "sqlite":
        yield sqlite_database(folder / "penstock.db")
        return
    pool: Pool = request.getfixturevalue("postgres_pool")
    url = pool.copy()
    yield url
    pool.drop(url)


def capability_folder(folder: Path, statements: str, migrations: Mapping[str, str]) -> Path:
    """Create a capability folder with the given statements and migrations, by file name."""
    for kind, files in (("statements", {"portable": statements}), ("migrations", migrations)):
        (folder / kind).mkdir(parents=True)
        for name, text in files.items():
            (folder / kind / f"{name}.sql").write_text(text)
    return folder
