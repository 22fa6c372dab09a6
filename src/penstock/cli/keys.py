"""`penstock keys`: works straight on the database."""

from typing import Annotated, Literal

from cyclopts import App, Parameter

from penstock.access.keys import Keys, ListedKey, Role
from penstock.cli.database import opened, operator
from penstock.cli.flags import DATABASE, DatabaseFlags, Json, switch
from penstock.cli.printing import note, write_json, write_line, write_table
from penstock.cli.times import show_time
from penstock.clock import format_time, system_clock

app = App(name="keys")


@app.command(
    help_epilogue="""Examples:
  penstock keys create etl-prod --role writer
  penstock keys create shop-team --role reader --namespace shop
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
    flags: DatabaseFlags = DATABASE,
    as_json: Json = False,
) -> None:
    """Make a key and print its token, this once."""
    # The first key is made before the server that refuses to start without one.
    with opened(flags, must_exist=False) as database:
        keys = Keys(database, clock=system_clock)
        made = keys.create(name, Role(role), namespace=namespace, who=operator())
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
        ("name", "role", "namespace", "created", "revoked"),
        (
            (
                key.name,
                key.role,
                key.namespace or "all",
                _time(key.created_at),
                _time(key.revoked_at),
            )
            for key in keys
        ),
    )


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


def _document(key: ListedKey) -> dict[str, str | None]:
    return {
        "id": key.id,
        "name": key.name,
        "role": key.role,
        "namespace": key.namespace,
        "createdAt": format_time(key.created_at),
        "revokedAt": None if key.revoked_at is None else format_time(key.revoked_at),
    }


def _time(at: int | None) -> str:
    return "" if at is None else show_time(format_time(at))
