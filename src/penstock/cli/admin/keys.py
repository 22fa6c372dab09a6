"""`penstock keys`: works straight on the database."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from penstock.access.keys import Keys, ListedKey, Rate
from penstock.cli.database import opened, operator
from penstock.cli.options import DATABASE, DatabaseFlags, Json, switch
from penstock.cli.output import note, write_json, write_line, write_table
from penstock.cli.times import show_time
from penstock.clock import format_time, system_clock
from penstock.schema.admin import KeyRole

app = App(name="keys")

RequestsPerSecond = Annotated[
    int | None,
    Parameter(help="how many requests it may make; 0 is without limit", show_default=False),
]
BytesPerSecond = Annotated[
    int | None,
    Parameter(help="how many bytes it may send, unpacked; 0 is without limit", show_default=False),
]


@app.command(
    help_epilogue="""Examples:
  penstock keys create etl-prod --role writer
  penstock keys create shop-team --role reader --namespace shop
  penstock keys create batch --role writer --requests-per-second 50
  export PENSTOCK_API_KEY=$(penstock keys create me --role admin)""",
)
def create(
    name: Annotated[str, Parameter(help="what the key is called, in lists and in the record")],
    /,
    *,
    role: Annotated[Literal["reader", "writer", "admin"], Parameter(help="what it may do")],
    namespace: Annotated[
        str | None, Parameter(name=("--namespace", "-n"), help="the only namespace it is for")
    ] = None,
    requests_per_second: RequestsPerSecond = None,
    bytes_per_second: BytesPerSecond = None,
    flags: DatabaseFlags = DATABASE,
    as_json: Json = False,
) -> None:
    """Make a key and print its token, this once."""
    # The first key is made before the server that refuses to start without one.
    with opened(flags, must_exist=False) as database:
        keys = Keys(database, clock=system_clock)
        rate = Rate(requests_per_second, bytes_per_second)
        made = keys.create(name, KeyRole(role), namespace=namespace, rate=rate, who=operator())
        try:
            if as_json:
                write_json({"key": _document(made.key), "token": made.token})
            else:
                write_line(made.token)
        except BaseException:
            keys.revoke(name, who=operator())
            note(f"key {name!r} is revoked again, as nobody was told its token")
            raise
    if not as_json:
        note(f"key {name!r} is made; its token is not kept, so keep it now")


@app.command(name="list")
def list_keys(
    *,
    revoked: Annotated[bool, switch("also those that work no more")] = False,
    flags: DatabaseFlags = DATABASE,
    as_json: Json = False,
) -> None:
    """List the keys that work."""
    with opened(flags) as database:
        keys = Keys(database, clock=system_clock).listed(revoked=revoked)
    if as_json:
        write_json({"keys": [_document(key) for key in keys]})
        return
    write_table(
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
    name: Annotated[str, Parameter(help="the key whose rates to set")],
    /,
    *,
    requests_per_second: RequestsPerSecond = None,
    bytes_per_second: BytesPerSecond = None,
    flags: DatabaseFlags = DATABASE,
    as_json: Json = False,
) -> None:
    """Set how much a key may send in a second; servers follow within seconds.

    A rate that is left out becomes the server's default: the settings
    key_requests_per_second and key_bytes_per_second.
    """
    rate = Rate(requests_per_second, bytes_per_second)
    with opened(flags) as database:
        key = Keys(database, clock=system_clock).limit(name, rate, who=operator())
    if as_json:
        write_json(_document(key))
    else:
        write_line(f"key {name}: {str(rate) or 'the default of the server'}")


@app.command
def revoke(
    name: Annotated[str, Parameter(help="the key that is to work no more")],
    /,
    *,
    flags: DatabaseFlags = DATABASE,
    as_json: Json = False,
) -> None:
    """Let a key work no more; servers notice within seconds."""
    with opened(flags) as database:
        key = Keys(database, clock=system_clock).revoke(name, who=operator())
    if as_json:
        write_json(_document(key))
    else:
        write_line(f"key {name} is revoked")


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
