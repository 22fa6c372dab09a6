"""Flags that several commands share, and the settings they lead to."""

import signal
from dataclasses import asdict, dataclass
from typing import Annotated

from cyclopts import Parameter

from penstock.client import Client
from penstock.config import Loaded, load

Json = Annotated[
    bool, Parameter(name="--json", negative=(), show_default=False, help="print JSON, complete")
]


def switch(text: str) -> Parameter:
    """A flag that is off unless it is given."""
    return Parameter(negative=(), show_default=False, help=text)


Inputs = Annotated[
    tuple[str, ...],
    Parameter(
        name="--input", negative=(), show_default=False, help="a dataset it reads; repeatable"
    ),
]
Outputs = Annotated[
    tuple[str, ...],
    Parameter(
        name="--output", negative=(), show_default=False, help="a dataset it writes; repeatable"
    ),
]
Why = Annotated[str, Parameter(help="the reason, for the record")]
Limit = Annotated[int, Parameter(help="how many to show at most")]
Offset = Annotated[int, Parameter(help="how many to leave out first")]
Namespace = Annotated[
    str | None, Parameter(name=("--namespace", "-n"), help="the namespace it is in")
]
Config = Annotated[str | None, Parameter(help="the settings file; else penstock.toml if there")]
Database = Annotated[str | None, Parameter(help="sqlite:///FILE or postgresql://…")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ServerFlags:
    """What the server may be told on the command line."""

    host: Annotated[str | None, Parameter(help="the address to listen on")] = None
    port: Annotated[int | None, Parameter(help="the port to listen on; 0 takes a free one")] = None
    database: Database = None
    insecure: Annotated[bool | None, Parameter(help="listen beyond this machine without keys")] = (
        None
    )
    auth: Annotated[
        str | None,
        Parameter(help="without keys, serve callers on this machine: required, open-on-loopback"),
    ] = None
    config: Config = None
    log_level: Annotated[
        str | None, Parameter(help="the least serious thing to log: debug, info, warning, error")
    ] = None
    log_format: Annotated[str | None, Parameter(help="how to write log lines: text, json")] = None

    def load(self) -> Loaded:
        """The settings with these flags."""
        return load(asdict(self))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class DatabaseFlags:
    """Which database a command works on."""

    database: Database = None
    config: Config = None

    def load(self) -> Loaded:
        """The settings with these flags."""
        return load(asdict(self))


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RemoteFlags:
    """Which server a command talks to. Its key comes from PENSTOCK_API_KEY or the settings file."""

    url: Annotated[str | None, Parameter(help="the server to talk to")] = None
    config: Config = None

    def connect(self) -> Client:
        """A client of that server."""
        settings = load(asdict(self)).settings
        # Who types a command decides by themselves whether to try again.
        return Client(settings.url, settings.api_key, retry_seconds=0)


SERVER = ServerFlags()
DATABASE = DatabaseFlags()
REMOTE = RemoteFlags()


_STOPPED_BY = (signal.SIGINT, signal.SIGTERM)
