"""`penstock keys`, which opens the database."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from penstock.access.keys import Keys, ListedKey, Rate
from penstock.cli.database import opened, operator
from penstock.cli.formats import show_time
from penstock.cli.options import DATABASE, DatabaseOptions, option
from penstock.cli.output import note
from penstock.clock import format_time, system_clock
from penstock.schema.admin import KeyRole

app = App(name="keys")

RequestsPerSecond = Annotated[int | None, option("the limit of requests; 0 is no limit")]
BytesPerSecond = Annotated[int | None, option("the limit of uncompressed bytes; 0 is no limit")]


@app.command(
    help_epilogue="""Examples:
  penstock keys create etl-prod --role writer
  penstock keys create shop-team --role reader --namespace shop
  penstock keys create batch --role writer --requests-per-second 50
  export PENSTOCK_API_KEY=$(penstock keys create me --role admin)""",
)
def create(
    name: Annotated[str, Parameter(help="the name of the key, also in the audit log")],
    /,
    *,
    role: Annotated[Literal["reader", "writer", "admin"], Parameter(help="its rights")],
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="the only namespace that it may use")
    ] = None,
    requests_per_second: RequestsPerSecond = None,
    bytes_per_second: BytesPerSecond = None,
    options: DatabaseOptions = DATABASE,
) -> None:
    """Create a key and print its token, which cannot be shown again."""
    # A server may refuse to start without a key, so the database may not exist yet.
    with opened(options, must_exist=False) as database:
        keys = Keys(database, clock=system_clock)
        rate = Rate(requests_per_second, bytes_per_second)
        created = keys.create(name, KeyRole(role), namespace=namespace, rate=rate, who=operator())
        try:
            document = {"key": _document(created.key), "token": created.token}
            options.write_line(document, created.token)
        except BaseException:
            keys.revoke(name, who=operator())
            note(f"key {name!r} is revoked, because its token could not be printed")
            raise
    if not options.json:
        note(f"key {name!r} is created; store its token now, it cannot be shown again")


@app.command(name="list")
def list_keys(
    *,
    revoked: Annotated[bool, option("also revoked keys")] = False,
    options: DatabaseOptions = DATABASE,
) -> None:
    """List the valid keys."""
    with opened(options) as database:
        keys = Keys(database, clock=system_clock).listed(revoked=revoked)
    options.write_table(
        {"keys": [_document(key) for key in keys]},
        ("name", "role", "namespace", "rate", "created", "revoked"),
        (
            (
                key.name,
                key.role,
                key.namespace or "all",
                str(key.rate),
                _time(key.created_at),
                _time(key.revoked_at),
            )
            for key in keys
        ),
    )


@app.command(
    help_epilogue="""Examples:
  penstock keys limit etl-prod --requests-per-second 100
  penstock keys limit etl-prod --requests-per-second 100 --bytes-per-second 5000000
  penstock keys limit etl-prod     (back to the server's default)""",
)
def limit(
    name: Annotated[str, Parameter(help="the key to limit")],
    /,
    *,
    requests_per_second: RequestsPerSecond = None,
    bytes_per_second: BytesPerSecond = None,
    options: DatabaseOptions = DATABASE,
) -> None:
    """Limit the requests and bytes of a key per second; servers follow within seconds.

    A missing limit becomes the server's default: the settings key_requests_per_second and
    key_bytes_per_second.
    """
    rate = Rate(requests_per_second, bytes_per_second)
    with opened(options) as database:
        key = Keys(database, clock=system_clock).limit(name, rate, who=operator())
    options.write_line(_document(key), f"key {name}: {str(rate) or 'the default of the server'}")


@app.command
def revoke(
    name: Annotated[str, Parameter(help="the key to revoke")],
    /,
    *,
    options: DatabaseOptions = DATABASE,
) -> None:
    """Revoke a key; servers notice within seconds."""
    with opened(options) as database:
        key = Keys(database, clock=system_clock).revoke(name, who=operator())
    options.write_line(_document(key), f"key {name} is revoked")


def _document(key: ListedKey) -> dict[str, str | int | None]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "namespace": key.namespace,
        "createdAt": format_time(key.created_at),
        "revokedAt": None if key.revoked_at is None else format_time(key.revoked_at),
        "requestsPerSecond": key.requests_per_second,
        "bytesPerSecond": key.bytes_per_second,
    }


def _time(at: int | None) -> str:
    return "" if at is None else show_time(format_time(at))
