"""Options that several commands share, and the results that they write."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, TypeVar

from cyclopts import Parameter

from penstock.cli.output import (
    Cell,
    Column,
    write_fields,
    write_json,
    write_line,
    write_rest,
    write_table,
)
from penstock.client import Client
from penstock.config import Loaded, load

T = TypeVar("T")


def option(text: str, name: str | None = None) -> Parameter:
    """Describe an option without a default to show; a flag has no negative form."""
    return Parameter(name=name, negative=(), show_default=False, help=text)


Inputs = Annotated[tuple[str, ...], option("a dataset that the job reads; repeatable", "--input")]
Outputs = Annotated[
    tuple[str, ...], option("a dataset that the job writes; repeatable", "--output")
]
Reason = Annotated[str, Parameter(name="--why", help="the reason, for the audit log")]
OptionalReason = Annotated[str, option("the reason, for the audit log", "--why")]
Limit = Annotated[int, Parameter(help="how many to show at most")]
Offset = Annotated[int, Parameter(help="how many to skip")]
Namespace = Annotated[
    str | None, Parameter(name=("--namespace", "-n"), help="the namespace of the name")
]
NamespaceFilter = Annotated[
    str | None, Parameter(name=("--namespace", "-n"), help="only this namespace")
]
Config = Annotated[str | None, Parameter(help="the settings file; default: penstock.toml if any")]
Database = Annotated[str | None, Parameter(help="sqlite:///FILE or postgresql://…")]
Objects = Annotated[
    str | None, Parameter(help="the object store: file:///FOLDER, s3://BUCKET/PREFIX, …")
]
Executor = Annotated[str | None, Parameter(help="where workloads run: local, or dask://HOST:PORT")]
RunAs = Annotated[str | None, Parameter(help="the user that runs the commands; needs root")]
Queue = Annotated[
    str | None, Parameter(help="the ingest queue: database, or zookeeper://HOST:PORT/CHROOT")
]
IngestFolder = Annotated[str | None, Parameter(help="the working folders of ingest jobs")]
LogLevel = Annotated[
    str | None, Parameter(help="the lowest level to log: debug, info, warning, error")
]
LogFormat = Annotated[str | None, Parameter(help="the format of log lines: text, json")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """The form of a command's result: JSON, or text for people."""

    json: Annotated[bool, option("print the complete result as JSON", "--json")] = False

    def write(self, document: T, write_text: Callable[[T], None]) -> None:
        """Write a document as JSON, or with a function that writes text."""
        if self.json:
            write_json(document)
        else:
            write_text(document)

    def write_line(self, document: object, text: str) -> None:
        """Write a document as JSON, or one line of text."""
        self.write(document, lambda _: write_line(text))

    def write_fields(self, document: object, fields: Iterable[tuple[str, Cell]]) -> None:
        """Write a document as JSON, or its fields."""
        self.write(document, lambda _: write_fields(fields))

    def write_table(
        self,
        document: object,
        columns: Sequence[str | Column],
        rows: Iterable[Sequence[Cell]],
        *,
        total_count: int = 0,
        offset: int = 0,
    ) -> None:
        """Write a document as JSON, or its rows as a page of a table of `total_count` rows."""
        if self.json:
            write_json(document)
            return
        page = list(rows)
        write_table(columns, page)
        write_rest(len(page), total_count, offset)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Options(OutputOptions):
    """The server that a command calls, and the form of its result.

    The API key comes from PENSTOCK_API_KEY or the settings file.
    """

    url: Annotated[str | None, Parameter(help="the server to call")] = None
    config: Config = None

    def connect(self) -> Client:
        """Open a client of the server."""
        settings = load({"url": self.url, "config": self.config}).settings
        # A person at a terminal decides whether to retry.
        return Client(settings.url, settings.api_key, retry_seconds=0)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DatabaseOptions(OutputOptions):
    """The database that a command opens, and the form of its result."""

    database: Database = None
    config: Config = None

    def load(self) -> Loaded:
        """Load the settings with these options."""
        return load({"database": self.database, "config": self.config})


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ProcessOptions:
    """The settings that every long-running command accepts."""

    database: Database = None
    config: Config = None
    log_level: LogLevel = None
    log_format: LogFormat = None

    def load(self, **more: object) -> Loaded:
        """Load the settings with these options."""
        return load({**asdict(self), **more})


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServerOptions(ProcessOptions):
    """The settings of a server."""

    host: Annotated[str | None, Parameter(help="the address to listen on")] = None
    port: Annotated[int | None, Parameter(help="the port to listen on; 0 takes a free one")] = None
    insecure: Annotated[bool | None, Parameter(help="listen to other machines without keys")] = None
    auth: Annotated[
        str | None,
        Parameter(help="callers on this machine without a key: required, open-on-loopback"),
    ] = None


OUTPUT = OutputOptions()
OPTIONS = Options()
DATABASE = DatabaseOptions()
SERVER = ServerOptions()
