"""All settings, with their descriptions and the origins of their values.

A flag overrides the environment (PENSTOCK_…). The environment overrides the file (penstock.toml),
and the file overrides the default. Messages, `repr` and listings never contain secrets.
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
# Tables of the file that are not settings; `apply` commands read them.
TABLES = ("arcs", "arrivals", "collections", "namespace", "project")
MASK = "********"
# Secret URL parameters, as drivers of databases and object stores spell them.
_SECRET_PARAMETER = re.compile(
    r"(?i)([?&;][\w.-]*(?:pass|pwd|secret|token|credential|signature|key)[\w.-]*=)[^&;#]*"
)
_ORACLE = re.compile(r"(?i)(jdbc:oracle:\w+:[^/@]*)/.*@")
MIB = 1024 * 1024

# The variables that commands of arcs inherit. None of them is a secret.
COMMAND_ENVIRONMENT = "PATH,HOME,USER,LOGNAME,SHELL,LANG,LANGUAGE,LC_ALL,LC_CTYPE,TZ,TMPDIR"

T = TypeVar("T")
Value = str | int | bool | None
Found = dict[str, tuple[object, str]]

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
# Secret URLs: only their passwords are masked.
_URLS = ("database", "openlineage_url", "queue", "smtp")


class About(NamedTuple):
    """The description of a setting and its permitted values."""

    help: str
    kind: type
    secret: bool = False
    least: int = 0
    most: int | None = None
    choices: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    variable: str = ""  # the name in other programs; our own variable overrides it

    @property
    def expected(self) -> str:
        """The permitted values, in words."""
        if self.kind is bool:
            return "true or false"
        if self.kind is int:
            if self.most is None:
                return f"an integer, at least {self.least}"
            return f"an integer from {self.least} to {self.most}"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.prefixes:
            return f"text that begins with {' or '.join(self.prefixes)}"
        return "non-empty text"

    def takes(self, value: object) -> bool:
        """Return whether the setting permits this value."""
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
    """Return the user's data folder for Penstock."""
    return _xdg_folder(environ, "XDG_DATA_HOME", ".local/share")


def default_database(environ: Mapping[str, str]) -> str:
    """Return the URL of a SQLite file in the user's data folder, which may not exist yet."""
    return f"sqlite:///{data_folder(environ) / 'penstock.db'}"


def default_objects(environ: Mapping[str, str]) -> str:
    """Return the URL of a folder beside the default database."""
    return f"file://{data_folder(environ) / 'objects'}"


def default_ingest_folder(environ: Mapping[str, str]) -> str:
    """Return the path of a folder beside the default database."""
    return str(data_folder(environ) / "ingest")


def _setting(default: T, kind: type, help: str, **rules: Any) -> T:
    about = About(help, kind, **rules)
    value: T = field(default=default, repr=not about.secret, metadata={"about": about})
    return value


def _home_setting(
    default: Callable[[Mapping[str, str]], str], help: str, *, secret: bool = False
) -> str:
    value: str = field(
        default_factory=lambda: default(os.environ),
        repr=not secret,
        metadata={"about": About(help, str, secret=secret)},
    )
    return value


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of one process."""

    host: str = _setting("127.0.0.1", str, "address that the server listens on")
    port: int = _setting(
        5000, int, "port that the server listens on; 0 selects a free port", most=65535
    )
    database: str = _home_setting(
        default_database, "database URL: sqlite:///FILE or postgresql://…", secret=True
    )
    objects: str = _home_setting(
        default_objects, "store of data and manifests: file:///FOLDER, s3://BUCKET/PREFIX, …"
    )
    queue: str = _setting(
        "database",
        str,
        "store of the ingest queue: database, or zookeeper://HOST:PORT/CHROOT",
        secret=True,
        prefixes=("database", "zookeeper://"),
    )
    ingest_folder: str = _home_setting(
        default_ingest_folder, "folder for the working folders of ingest jobs"
    )
    ingest_session_seconds: int = _setting(
        30, int, "seconds until the locks of a dead ingest worker expire", least=1
    )
    space_free_mb: int = _setting(
        1024, int, "free disk space in MB that ingest leaves in its folder"
    )
    smtp: str | None = _setting(
        None,
        str,
        "mail server: smtp://[USER:PASSWORD@]HOST:PORT, or smtps://…",
        secret=True,
        prefixes=("smtp://", "smtps://"),
    )
    mail_from: str = _setting("penstock@localhost", str, "sender address of mail")
    ezid_url: str = _setting(
        "https://ezid.cdlib.org", str, "URL of the EZID service", prefixes=("http://", "https://")
    )
    ezid_user: str | None = _setting(None, str, "account at the EZID service")
    ezid_password: str | None = _setting(None, str, "password of the EZID account", secret=True)
    auth: str = _setting(
        "open-on-loopback",
        str,
        "calls without a key, before the first key exists: `open-on-loopback` accepts them from "
        "this machine, `required` refuses them; after that, every call needs a key",
        choices=("required", "open-on-loopback"),
    )
    proxies: str | None = _setting(
        None,
        str,
        "trusted reverse proxies, which send X-Forwarded-For: ADDRESS,NETWORK",
    )
    insecure: bool = _setting(False, bool, "let a server without keys listen beyond loopback")
    hosts: str | None = _setting(
        None,
        str,
        "additional host names for calls without a key from this machine: NAME,NAME",
    )
    secrets_key: str | None = _setting(
        None,
        str,
        "encryption key for secrets in the database, 32 bytes in base64; old keys follow after "
        "commas; without it, a key file: DATABASE.key, or secrets.key in the data folder",
        secret=True,
    )
    log_level: str = _setting(
        "info", str, "lowest severity that is logged", choices=("debug", "info", "warning", "error")
    )
    log_format: str = _setting("text", str, "format of log lines", choices=("text", "json"))
    traces: str = _setting(
        "off",
        str,
        "trace export: off, or otlp to the collector that the OTEL_… variables name",
        choices=("off", "otlp"),
    )
    openlineage_url: str | None = _setting(
        None,
        str,
        "second OpenLineage backend that receives events about our own runs",
        secret=True,
        prefixes=("http://", "https://"),
        variable="OPENLINEAGE_URL",
    )
    openlineage_endpoint: str = _setting(
        "api/v1/lineage",
        str,
        "path below that URL that receives events",
        variable="OPENLINEAGE_ENDPOINT",
    )
    openlineage_api_key: str | None = _setting(
        None,
        str,
        "API key for that backend",
        secret=True,
        variable="OPENLINEAGE_API_KEY",
    )
    body_bytes_max: int = _setting(
        64 * MIB, int, "maximum size of a request body in bytes, unpacked", least=1
    )
    bodies_bytes_max: int = _setting(
        256 * MIB,
        int,
        "maximum size in bytes, unpacked, of all request bodies without an answer yet; "
        "more are refused with 429 and Retry-After",
        least=1,
    )
    header_bytes_max: int = _setting(
        64 * 1024, int, "maximum size of a request line with its headers, in bytes", least=1024
    )
    header_count_max: int = _setting(128, int, "maximum number of headers in a request", least=1)
    first_request_seconds: int = _setting(
        30, int, "seconds until a new connection must send its first request", least=1
    )
    header_seconds: int = _setting(
        20, int, "seconds until the headers of a request must be complete", least=1
    )
    silence_seconds: int = _setting(
        60,
        int,
        "seconds that a client may pause while it sends a body or reads an answer",
        least=1,
    )
    connections_max: int = _setting(
        2048,
        int,
        "maximum number of connections; lower if the system permits fewer open files",
        least=1,
    )
    connections_per_address_max: int = _setting(
        512, int, "maximum number of connections of one client address; proxies are exempt", least=1
    )
    key_requests_per_second: int = _setting(
        0,
        int,
        "requests per second of a key without its own limit; 0 means no limit",
    )
    key_bytes_per_second: int = _setting(
        0,
        int,
        "bytes of bodies per second, unpacked, of a key without its own limit; 0 means no limit",
    )
    payload_bytes_max: int = _setting(
        100 * 1024**3, int, "maximum size of an uploaded payload, in bytes", least=1
    )
    name_length_max: int = _setting(
        NAME_BYTES_MAX,
        int,
        "maximum length of a name in a request, in bytes; in facets it is always 1024",
        least=1,
        most=NAME_BYTES_MAX,
    )
    json_depth_max: int = _setting(64, int, "maximum nesting depth of a JSON body", least=1)
    queue_length_max: int = _setting(
        4096, int, "maximum number of waiting writes; more are refused with 429", least=1
    )
    event_ahead_seconds: int = _setting(
        600,
        int,
        "seconds that an event's time may be ahead of the server's clock; "
        "the time of an event further ahead counts as now",
    )
    batch_events_max: int = _setting(256, int, "maximum number of events in a transaction", least=1)
    sweep_seconds: int = _setting(
        1, int, "seconds between checks for expired leases and ended intervals", least=1
    )
    executor: str = _setting(
        "local",
        str,
        "executor of arc workloads: local, or dask://HOST:PORT",
        prefixes=("local", "dask://"),
    )
    arc_concurrency: int = _setting(
        4, int, "maximum number of lots that an engine processes at a time", least=1, most=1000
    )
    arc_namespaces: str | None = _setting(
        None, str, "namespaces whose arcs the engine runs, default all: NAME,NAME"
    )
    command_environment: str = _setting(
        COMMAND_ENVIRONMENT, str, "variables of the engine that each command of an arc inherits"
    )
    command_environment_allowed: str | None = _setting(
        None,
        str,
        "additional variables of the engine that an arc may pass to its command: NAME,NAME",
    )
    run_as: str | None = _setting(
        None, str, "user that runs commands of arcs; the engine must run as root"
    )
    url: str = _setting(
        "http://127.0.0.1:5000",
        str,
        "server that the commands call",
        prefixes=("http://", "https://"),
    )
    api_key: str | None = _setting(
        None, str, "API key that the commands send to the server", secret=True
    )


class ShownSetting(NamedTuple):
    """One line of `penstock config show`."""

    name: str
    value: Value
    origin: str
    help: str


@dataclass(frozen=True)
class Loaded:
    """Settings with their origins."""

    settings: Settings
    origins: Mapping[str, str]

    def shown(self) -> list[ShownSetting]:
        """Return all settings, with secrets masked."""
        return [
            ShownSetting(
                name, masked(name, getattr(self.settings, name)), self.origins[name], about.help
            )
            for name, about in SETTINGS.items()
        ]


def _about(setting: "Field[Any]") -> About:
    about: About = setting.metadata["about"]
    return about


SETTINGS: Mapping[str, About] = {setting.name: _about(setting) for setting in fields(Settings)}

# Variables that hold secrets or name files with secrets.
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
    """Collect the settings. A flag that is None is ignored; `config` names the file."""
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
    """Return the value with its secrets masked."""
    if not value or not SETTINGS[name].secret:
        return value
    return mask_url(str(value)) if name in _URLS else MASK


def mask_url(url: str) -> str:
    """Return the URL with its passwords masked. In doubt, mask more."""
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
    # Compose files set variables that are not defined to empty text: treat it as unset.
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
            "name a file that contains only the secret"
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
            "create it, or name another file with --config or PENSTOCK_CONFIG"
        ) from None
    said = {key: value for key, value in table.items() if key not in TABLES}
    for key in said:
        if key not in SETTINGS:
            raise Invalid(f"{path}: unknown setting {key!r}; {_instead_of(key)}")
    return {key: (value, f"file {path}") for key, value in said.items()}


def _instead_of(key: str) -> str:
    near = difflib.get_close_matches(key, SETTINGS, n=1)
    return f"did you mean {near[0]}?" if near else f"the settings are {', '.join(SETTINGS)}"


def _file_path(flag: object | None, environ: Mapping[str, str], cwd: Path) -> Path | None:
    """Return the file of the flag or variable, else the first default file that exists."""
    named = flag or environ.get("PENSTOCK_CONFIG")
    if named:
        return cwd / str(named)
    usual = (cwd / FILE_NAME, _xdg_folder(environ, "XDG_CONFIG_HOME", ".config") / FILE_NAME)
    return next((path for path in usual if path.is_file()), None)


def _xdg_folder(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """Return the folder that the XDG rules define. They ignore a relative path."""
    named = Path(environ.get(variable, ""))
    if named.is_absolute():
        return named / "penstock"
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / fallback / "penstock"


def _parsed(about: About, text: str) -> object:
    """Convert text to the kind of the setting, or return it unchanged if it does not fit."""
    if about.kind is int and re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
        return int(text)
    if about.kind is bool and text.strip().lower() in _TRUE + _FALSE:
        return text.strip().lower() in _TRUE
    return text


def _checked(name: str, value: object, origin: str) -> object:
    """Return the value, or raise `Invalid` if the setting does not permit it."""
    about = SETTINGS[name]
    if about.choices and isinstance(value, str):
        value = value.lower()
    if not about.takes(value):
        found = "" if about.secret else f", not {value!r}"
        raise Invalid(f"{origin}: {name} must be {about.expected}{found}")
    return value
