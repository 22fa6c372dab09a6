"""Every setting, what it means, and where its value came from.

A flag beats the environment (PENSTOCK_…), which beats the file (penstock.toml), which beats the
default. Secrets are never quoted: not by messages, not by `repr`, and masked when shown.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from penstock.errors import Invalid, Malformed
from penstock.ids import NAME_BYTES_MAX

FILE_NAME = "penstock.toml"
# What else the file may hold: what is declared, for the commands that apply it.
TABLES = ("arcs", "arrivals", "collections", "namespace", "project")
MASK = "********"
# Parameters of URLs, as drivers of databases and object stores write them, that are secrets.
_SECRET_PARAMETER = re.compile(
    r"(?i)([?&;][\w.-]*(?:pass|pwd|secret|token|credential|signature|key)[\w.-]*=)[^&;#]*"
)
_ORACLE = re.compile(r"(?i)(jdbc:oracle:\w+:[^/@]*)/.*@")
MIB = 1024 * 1024

# What commands of arcs inherit: nothing that is secret, and what programs expect.
COMMAND_ENVIRONMENT = "PATH,HOME,USER,LOGNAME,SHELL,LANG,LANGUAGE,LC_ALL,LC_CTYPE,TZ,TMPDIR"

T = TypeVar("T")
Value = str | int | bool | None
Found = dict[str, tuple[object, str]]

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
# Secrets of which all but the password may be shown.
_URLS = ("database", "openlineage_url", "queue", "smtp")


class About(NamedTuple):
    """What people are told about a setting, and what they may write."""

    help: str
    kind: type
    secret: bool = False
    least: int = 0
    most: int | None = None
    choices: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    variable: str = ""  # by which other programs know it; our own beats it

    @property
    def expected(self) -> str:
        """What to write, in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind is int:
            upper = f" to {self.most}" if self.most is not None else " upwards"
            return f"a whole number from {self.least}{upper}"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.prefixes:
            return f"a text that begins with {' or '.join(self.prefixes)}"
        return "a text that is not empty"

    def takes(self, value: object) -> bool:
        """Whether this is a value that the setting can have."""
        if isinstance(value, bool):
            return self.kind is bool
        if isinstance(value, int):
            return self.kind is int and self.least <= value <= (self.most or value)
        if not isinstance(value, str) or self.kind is not str:
            return False
        if self.choices:
            return value in self.choices
        return value.startswith(self.prefixes) if self.prefixes else bool(value.strip())


def data_folder(environ: Mapping[str, str]) -> Path:
    """The user's data folder for Penstock."""
    return _xdg_folder(environ, "XDG_DATA_HOME", ".local/share")


def default_database(environ: Mapping[str, str]) -> str:
    """A SQLite file in the user's data folder; whoever opens it makes the folder."""
    return f"sqlite:///{data_folder(environ) / 'penstock.db'}"


def default_objects(environ: Mapping[str, str]) -> str:
    """A folder beside the default database."""
    return f"file://{data_folder(environ) / 'objects'}"


def default_ingest_folder(environ: Mapping[str, str]) -> str:
    """A folder beside the default database."""
    return str(data_folder(environ) / "ingest")


def _setting(default: T, kind: type, help: str, **rules: Any) -> T:
    about = About(help, kind, **rules)
    value: T = field(default=default, repr=not about.secret, metadata={"about": about})
    return value


def _home_setting(
    default: Callable[[Mapping[str, str]], str], help: str, *, secret: bool = False
) -> str:
    """A place that is in the user's data folder unless somebody says otherwise."""
    value: str = field(
        default_factory=lambda: default(os.environ),
        repr=not secret,
        metadata={"about": About(help, str, secret=secret)},
    )
    return value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The values that a server or a command works with."""

    host: str = _setting("127.0.0.1", str, "the address that the server listens on")
    port: int = _setting(
        5000, int, "the port that the server listens on; 0 takes a free one", most=65535
    )
    database: str = _home_setting(
        default_database, "where everything is kept: sqlite:///FILE or postgresql://…", secret=True
    )
    objects: str = _home_setting(
        default_objects, "where objects and manifests are: file:///FOLDER, s3://BUCKET/PREFIX, …"
    )
    queue: str = _setting(
        "database",
        str,
        "where the ingest queue is kept: database, or zookeeper://HOST:PORT/CHROOT",
        secret=True,
        prefixes=("database", "zookeeper://"),
    )
    ingest_folder: str = _home_setting(
        default_ingest_folder, "where ingest jobs have their working folders"
    )
    ingest_session_seconds: int = _setting(
        30, int, "how long the locks of an ingest worker last after it has died", least=1
    )
    space_free_mb: int = _setting(
        1024, int, "the free space, in MB, that ingest leaves in its folder"
    )
    smtp: str | None = _setting(
        None,
        str,
        "the mail server: smtp://[USER:PASSWORD@]HOST:PORT, or smtps://…",
        secret=True,
        prefixes=("smtp://", "smtps://"),
    )
    mail_from: str = _setting("penstock@localhost", str, "the sender of mails")
    ezid_url: str = _setting(
        "https://ezid.cdlib.org", str, "the EZID service", prefixes=("http://", "https://")
    )
    ezid_user: str | None = _setting(None, str, "the account at the EZID service")
    ezid_password: str | None = _setting(None, str, "the password of that account", secret=True)
    auth: str = _setting(
        "open-on-loopback",
        str,
        "whether a system without keys serves callers on this machine; "
        "once a key was made, every call needs one",
        choices=("required", "open-on-loopback"),
    )
    proxies: str | None = _setting(
        None,
        str,
        "reverse proxies whose X-Forwarded-For names the caller: ADDRESS,NETWORK",
    )
    insecure: bool = _setting(False, bool, "listen beyond this machine while no key was ever made")
    hosts: str | None = _setting(
        None,
        str,
        "further names by which programs on this machine call it without a key: NAME,NAME",
    )
    secrets_key: str | None = _setting(
        None,
        str,
        "the key that encrypts secrets in the database, 32 bytes in base64, older ones after "
        "commas; else a key file, DATABASE.key or secrets.key in the data folder",
        secret=True,
    )
    log_level: str = _setting(
        "info", str, "the least serious thing to log", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _setting("text", str, "how log lines are written", choices=("text", "json"))
    traces: str = _setting(
        "off",
        str,
        "where spans are sent: off, or otlp for the collector that OTEL_… variables name",
        choices=("off", "otlp"),
    )
    openlineage_url: str | None = _setting(
        None,
        str,
        "another OpenLineage backend that is told of our own runs",
        secret=True,
        prefixes=("http://", "https://"),
        variable="OPENLINEAGE_URL",
    )
    openlineage_endpoint: str = _setting(
        "api/v1/lineage",
        str,
        "where below its URL that backend receives events",
        variable="OPENLINEAGE_ENDPOINT",
    )
    openlineage_api_key: str | None = _setting(
        None,
        str,
        "the key that we show to that backend",
        secret=True,
        variable="OPENLINEAGE_API_KEY",
    )
    body_bytes_max: int = _setting(
        64 * MIB, int, "the largest request body, for example of an event, unpacked", least=1
    )
    bodies_bytes_max: int = _setting(
        256 * MIB,
        int,
        "how many bytes of request bodies, unpacked, the server holds until they are answered; "
        "further ones are told to come back (429)",
        least=1,
    )
    header_bytes_max: int = _setting(
        64 * 1024, int, "the largest request line with its headers, in bytes", least=1024
    )
    header_count_max: int = _setting(128, int, "how many headers a request may have", least=1)
    first_request_seconds: int = _setting(
        30, int, "how long a new connection may stay silent", least=1
    )
    header_seconds: int = _setting(
        20, int, "how long the headers of a request may take to arrive", least=1
    )
    silence_seconds: int = _setting(
        60,
        int,
        "how long a client may send no more of a body, or read no more of an answer",
        least=1,
    )
    connections_max: int = _setting(
        2048,
        int,
        "how many connections the server keeps open; fewer if the system allows fewer descriptors",
        least=1,
    )
    connections_per_address_max: int = _setting(
        512, int, "how many connections one client address may have; proxies are exempt", least=1
    )
    key_requests_per_second: int = _setting(
        0,
        int,
        "how many requests a key may make in a second, unless it has a rate of its own; "
        "0 is without limit",
    )
    key_bytes_per_second: int = _setting(
        0,
        int,
        "how many bytes of bodies, unpacked, a key may send in a second, unless it has a "
        "rate of its own; 0 is without limit",
    )
    payload_bytes_max: int = _setting(
        100 * 1024**3, int, "the largest payload that can be uploaded", least=1
    )
    name_length_max: int = _setting(
        NAME_BYTES_MAX,
        int,
        "the longest name in a request, in bytes; in facets, names may always have 1024",
        least=1,
        most=NAME_BYTES_MAX,
    )
    json_depth_max: int = _setting(64, int, "the deepest nesting of a request body", least=1)
    queue_length_max: int = _setting(
        4096, int, "how many writes may wait before callers are told to come back", least=1
    )
    event_ahead_seconds: int = _setting(
        600,
        int,
        "how far an event's time may be ahead of the server's clock; one further ahead counts as "
        "received now",
    )
    batch_events_max: int = _setting(256, int, "how many events share one transaction", least=1)
    sweep_seconds: int = _setting(
        1, int, "how often to look for leases that ran out and clocks that went on", least=1
    )
    executor: str = _setting(
        "local",
        str,
        "where workloads of arcs run: local, or dask://HOST:PORT",
        prefixes=("local", "dask://"),
    )
    arc_concurrency: int = _setting(
        4, int, "how many lots an engine works on at a time", least=1, most=1000
    )
    arc_namespaces: str | None = _setting(
        None, str, "the namespaces whose arcs the engine runs, instead of all: NAME,NAME"
    )
    command_environment: str = _setting(
        COMMAND_ENVIRONMENT, str, "the variables of the engine that every command of an arc gets"
    )
    command_environment_allowed: str | None = _setting(
        None,
        str,
        "the further variables of the engine that an arc may pass to its command: NAME,NAME",
    )
    run_as: str | None = _setting(
        None, str, "the user that commands of arcs run as; the engine must run as root"
    )
    url: str = _setting(
        "http://127.0.0.1:5000",
        str,
        "the server that commands talk to",
        prefixes=("http://", "https://"),
    )
    api_key: str | None = _setting(
        None, str, "the key that commands show to the server", secret=True
    )


class Shown(NamedTuple):
    """One line of `penstock config show`."""

    name: str
    value: Value
    origin: str
    help: str


@dataclass(frozen=True)
class Loaded:
    """Settings, and where each of them came from."""

    settings: Settings
    origins: Mapping[str, str]

    def shown(self) -> list[Shown]:
        """Every setting as people may see it."""
        return [
            Shown(name, masked(name, getattr(self.settings, name)), self.origins[name], about.help)
            for name, about in SETTINGS.items()
        ]


def _about(setting: "Field[Any]") -> About:
    about: About = setting.metadata["about"]
    return about


SETTINGS: Mapping[str, About] = {setting.name: _about(setting) for setting in fields(Settings)}

# The variables that hold secrets, or name files that do.
SECRET_VARIABLES: frozenset[str] = frozenset(
    variable
    for name, about in SETTINGS.items()
    if about.secret
    for variable in (f"PENSTOCK_{name.upper()}", f"PENSTOCK_{name.upper()}_FILE", about.variable)
    if variable
)


def load(
    flags: Mapping[str, object | None],
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Loaded:
    """Collect the settings; a flag that is None was not given, and `config` names the file."""
    environ = os.environ if environ is None else environ
    path = _file_path(flags.get("config"), environ, Path.cwd() if cwd is None else cwd)
    values: dict[str, Any] = {
        "database": default_database(environ),
        "objects": default_objects(environ),
        "ingest_folder": default_ingest_folder(environ),
    }
    origins = dict.fromkeys(SETTINGS, "default")
    for source in (_from_file(path), _from_environment(environ), _from_flags(flags)):
        for name, (value, origin) in source.items():
            values[name] = _checked(name, value, origin)
            origins[name] = origin
    return Loaded(Settings(**values), origins)


def masked(name: str, value: Value) -> Value:
    """The value without its secrets."""
    if not value or not SETTINGS[name].secret:
        return value
    return mask_url(str(value)) if name in _URLS else MASK


def mask_url(url: str) -> str:
    """The URL with its passwords covered; it would rather cover too much than too little."""
    url = re.sub(r"(?<=://)([^/?#@:]*):.*@", rf"\1:{MASK}@", url)
    url = _ORACLE.sub(rf"\1/{MASK}@", url)
    return _SECRET_PARAMETER.sub(rf"\1{MASK}", url)


def _from_flags(flags: Mapping[str, object | None]) -> Found:
    found: Found = {}
    for name, value in flags.items():
        if name != "config" and value is not None:
            text = _parsed(SETTINGS[name], value) if isinstance(value, str) else value
            found[name] = (text, f"flag --{name.replace('_', '-')}")
    return found


def _from_environment(environ: Mapping[str, str]) -> Found:
    """An empty variable counts as none, as it does in compose files."""
    found: Found = {}
    for name, about in SETTINGS.items():
        variable = f"PENSTOCK_{name.upper()}"
        text = environ.get(variable, "")
        pointer = environ.get(f"{variable}_FILE", "") if about.secret else ""
        if text and pointer:
            raise Invalid(f"{variable} and {variable}_FILE are both set; unset one of them")
        if text:
            found[name] = (_parsed(about, text), f"environment {variable}")
        elif pointer:
            found[name] = (_secret(Path(pointer), variable), f"environment {variable}_FILE")
        elif known := environ.get(about.variable, ""):
            found[name] = (_parsed(about, known), f"environment {about.variable}")
    return found


def _secret(path: Path, variable: str) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Invalid(
            f"{variable}_FILE names {path}, which cannot be read: {reason}; "
            "name a file that holds the secret and nothing else"
        ) from None


def _from_file(path: Path | None) -> Found:
    if path is None:
        return {}
    try:
        table = tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"{path} is not TOML: {error}; write lines like: port = 5000") from None
    except OSError as error:
        raise Invalid(
            f"the configuration file {path} cannot be read: {error.strerror}; "
            "make it, or name another with --config or PENSTOCK_CONFIG"
        ) from None
    said = {key: value for key, value in table.items() if key not in TABLES}
    for key in said:
        if key not in SETTINGS:
            raise Invalid(f"{path}: there is no setting {key!r}; {_instead_of(key)}")
    return {key: (value, f"file {path}") for key, value in said.items()}


def _instead_of(key: str) -> str:
    near = difflib.get_close_matches(key, SETTINGS, n=1)
    return f"did you mean {near[0]}?" if near else f"the settings are {', '.join(SETTINGS)}"


def _file_path(flag: object | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The file that was named, or else the first of the usual ones that exists."""
    named = flag or environ.get("PENSTOCK_CONFIG")
    if named:
        return cwd / str(named)
    usual = (cwd / FILE_NAME, _xdg_folder(environ, "XDG_CONFIG_HOME", ".config") / FILE_NAME)
    return next((path for path in usual if path.is_file()), None)


def _xdg_folder(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """The folder that the XDG rules give us; a relative path in the variable does not count."""
    named = Path(environ.get(variable, ""))
    if named.is_absolute():
        return named / "penstock"
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / fallback / "penstock"


def _parsed(about: About, text: str) -> object:
    """A text as the kind that the setting has, or unchanged if it is not one."""
    if about.kind is int and re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        return int(text)
    if about.kind is bool and text.strip().lower() in _TRUE + _FALSE:
        return text.strip().lower() in _TRUE
    return text


def _checked(name: str, value: object, origin: str) -> object:
    """The value, if it is one that the setting can have."""
    about = SETTINGS[name]
    if about.choices and isinstance(value, str):
        value = value.lower()
    if not about.takes(value):
        found = "" if about.secret else f", not {value!r}"
        raise Invalid(f"{origin}: {name} must be {about.expected}{found}")
    return value
