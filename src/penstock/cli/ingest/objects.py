"""`penstock ingest objects`."""

from collections.abc import Iterable
from typing import Annotated

from cyclopts import App, Parameter

from penstock.cli.formats import show_bytes, show_time
from penstock.cli.options import OPTIONS, Limit, Options
from penstock.cli.output import Column, note, write_json, write_line, write_table
from penstock.schema.ingest import StoredObject, StoredObjects

app = App(
    name="objects",
    help_epilogue="""Examples:
  penstock ingest objects --collection maps
  penstock ingest objects ark:/99999/fk4abc
  penstock ingest objects ark:/99999/fk4abc --version 1""",
)


@app.default
def objects(
    ark: Annotated[str | None, Parameter(help="show the versions and files of this object")] = None,
    /,
    *,
    version: Annotated[int | None, Parameter(help="show the files of this version")] = None,
    collection: Annotated[str | None, Parameter(help="only objects of this collection")] = None,
    before: Annotated[str | None, Parameter(help="only objects stored before this one")] = None,
    limit: Limit = 100,
    options: Options = OPTIONS,
) -> None:
    """List stored objects, newest first, or show one object."""
    if ark is not None:
        _show_object(ark, version, options)
        return
    with options.connect() as client:
        page = client.objects(collection=collection, limit=limit, before=before)
    options.write(page, _write_page)


def _write_page(page: StoredObjects) -> None:
    if page.objects:
        _write_objects(page.objects)
    else:
        write_line("there are no stored objects yet")
    if page.next is not None:
        note(f"older objects: --before {page.next}")


def _show_object(ark: str, version: int | None, options: Options) -> None:
    with options.connect() as client:
        versions = client.object_versions(ark).versions
        files = client.object_files(ark, version).files
    if options.json:
        write_json({"versions": versions, "files": files})
        return
    _write_objects(versions)
    write_line()
    write_table(
        ("file", Column("bytes", numbers=True), "type", "modified", "sha-512"),
        ((file.name, file.size, file.mime_type, file.last_modified, file.sha512) for file in files),
    )


def _write_objects(objects: Iterable[StoredObject]) -> None:
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
            for each in objects
        ),
    )
