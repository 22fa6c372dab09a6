"""`penstock ingest objects`."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.ingest.watch import show_bytes
from penstock.cli.options import REMOTE, Json, Limit, RemoteFlags
from penstock.cli.output import Column, note, write_json, write_line, write_table
from penstock.cli.times import show_time
from penstock.schema.ingest import StoredObject

app = App(
    name="objects",
    help_epilogue="""Examples:
  penstock ingest objects --collection maps
  penstock ingest objects ark:/99999/fk4abc
  penstock ingest objects ark:/99999/fk4abc --version 1""",
)


@app.default
def objects(
    ark: Annotated[str | None, Parameter(help="the versions and files of this object")] = None,
    /,
    *,
    version: Annotated[int | None, Parameter(help="the files of this version")] = None,
    collection: Annotated[str | None, Parameter(help="only those of this collection")] = None,
    before: Annotated[str | None, Parameter(help="only those stored before this one")] = None,
    limit: Limit = 100,
    remote: RemoteFlags = REMOTE,
    as_json: Json = False,
) -> None:
    """List what is stored, newest first, or show one object."""
    if ark is not None:
        _show_object(ark, version, remote, as_json)
        return
    with remote.connect() as client:
        found = client.objects(collection=collection, limit=limit, before=before)
    if as_json:
        write_json(found)
        return
    if found.objects:
        _write_objects(found.objects)
    else:
        write_line("nothing is stored yet")
    if found.next is not None:
        note(f"older ones: --before {found.next}")


def _show_object(ark: str, version: int | None, remote: RemoteFlags, as_json: bool) -> None:
    with remote.connect() as client:
        versions = client.object_versions(ark).versions
        files = client.object_files(ark, version).files
    if as_json:
        write_json({"versions": versions, "files": files})
        return
    _write_objects(versions)
    write_line()
    write_table(
        ("file", Column("bytes", numbers=True), "type", "modified", "sha-512"),
        ((file.name, file.size, file.mime_type, file.last_modified, file.sha512) for file in files),
    )


def _write_objects(found: Iterable[StoredObject]) -> None:
    write_table(
        (
            Column("object", whole=True),
            Column("version", numbers=True),
            "collection",
            "title",
            Column("size", numbers=True),
            Column("stored", whole=True),
        ),
        (
            (
                each.ark,
                each.version,
                each.collection,
                each.title,
                show_bytes(each.bytes),
                show_time(each.at),
            )
            for each in found
        ),
    )
