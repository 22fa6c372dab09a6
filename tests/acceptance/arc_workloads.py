"""Workloads of arcs that obey the orders of a test, and record that they ran.

Orders are files in a folder that the environment names, so that any process finds them.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from penstock.arcs.workload.task import Context, InputLot

FOLDER = "ARC_TEST_FOLDER"
LOOK_SECONDS = 0.01


class OrderedFailure(Exception):
    """A failure that the test ordered."""


def shout(context: Context) -> None:
    """Copy everything in capitals; without inputs the lot is empty."""
    obey(context)
    if not context.uris:
        context.empty()
    for uri in context.uris:
        context.write(_name(uri), context.read(uri).upper())


def shout_everywhere(context: Context) -> None:
    """Copy everything in capitals, into each output that the file `outputs` names."""
    obey(context)
    for output in (Path(os.environ[FOLDER]) / "outputs").read_text().split():
        for uri in context.uris:
            context.write(_name(uri), context.read(uri).upper(), output=output)


def join(context: Context) -> None:
    """Write one object with all inputs, by the names of datasets and objects."""
    obey(context)
    lines = [
        f"{name}/{_name(item.uri)}: {context.read(item.uri).decode()}"
        for name, lot in sorted(context.inputs.items())
        for item in lot.uris
    ]
    context.write("joined.txt", "\n".join(sorted(lines)).encode())


def be_empty(context: Context) -> None:
    """Declare the lot empty."""
    obey(context)
    context.empty()


def forget(context: Context) -> None:
    """Write nothing, and do not declare the lot empty."""
    obey(context)


def forget_b(context: Context) -> None:
    """Copy `a` files, and write nothing for a part without any."""
    for uri in context.uris:
        if _name(uri).startswith("a"):
            context.write(_name(uri), context.read(uri))


def write_some(context: Context) -> None:
    """Write an object without reading."""
    obey(context)
    context.write("some.txt", b"some")


def spill(context: Context) -> None:
    """Copy everything into the output `loud`."""
    for uri in context.uris:
        context.write(_name(uri), context.read(uri), output="loud")


def doubt(context: Context) -> None:
    """Copy everything in capitals, and record a check of each object."""
    shout(context)
    for uri in context.uris:
        is_good = b"bad" not in context.read(uri)
        context.check("no bad words", is_good, field=_name(uri), detail="" if is_good else "bad")


def nothing_bad(context: Context) -> None:
    """Check that no object has a bad word."""
    for uri in context.made():
        assert b"BAD" not in context.read(uri), f"{_name(uri)} has a bad word"


def is_not_empty(context: Context) -> bool:
    """Check that there is an object."""
    return bool(context.made())


def broken_check(context: Context) -> bool:
    """A check that raises an error."""
    raise OrderedFailure("no ruler at hand")


def one_part_each(inputs: Sequence[InputLot]) -> dict[str, list[str]]:
    """Split into a part for each object, named after it."""
    return {_name(item.uri): [item.uri] for lot in inputs for item in lot.uris}


def parts_as_ordered(inputs: Sequence[InputLot]) -> dict[str, list[str]]:
    """Split as the file `groups.json` orders, by the names of objects."""
    groups = json.loads((Path(os.environ[FOLDER]) / "groups.json").read_text())
    uris = {_name(item.uri): item.uri for lot in inputs for item in lot.uris}
    return {part: [uris[name] for name in names] for part, names in groups.items()}


def no_parts(inputs: Sequence[InputLot]) -> None:
    """Return something else than parts."""


def refuse_parts(inputs: Sequence[InputLot]) -> dict[str, list[str]]:
    """Try to end the process."""
    sys.exit("it cannot be divided")


def obey(context: Context) -> None:
    """Record this run, then obey the orders for this lot and part.

    A run that is killed after it was recorded leaves no order to the next.
    """
    folder = Path(os.environ[FOLDER])
    order = _next_order(folder, context)
    line = {"lot": context.lot, "part": context.part, "pid": os.getpid()}
    line["location"] = context.location()
    with (folder / "ran.jsonl").open("a") as journal:
        journal.write(json.dumps(line) + "\n")
    match order:
        case "fail":
            context.write("junk.txt", b"half of it")
            raise OrderedFailure(f"no luck with {context.part or context.lot}")
        case "exit":
            sys.exit("no more of this")
        case "interrupt":
            raise KeyboardInterrupt("somebody is at the door")
        case "mutter":
            raise OrderedFailure("half a character \ud800, and \x00")
        case "die":
            context.write("junk.txt", b"half of it")
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            _wait_for(folder / "never")
        case "wait":
            _wait_for(folder / "go")


def _next_order(folder: Path, context: Context) -> str:
    orders = folder / order_name(context.lot, context.part)
    if not orders.exists():
        return ""
    first, _, rest = orders.read_text().partition("\n")
    orders.write_text(rest)
    return first


def order_name(lot: str, part: str) -> str:
    """Return the file with the orders for a part of a lot, one in each line."""
    return f"orders-{quote(lot, safe='')}-{quote(part, safe='')}"


def ran(folder: Path) -> Iterator[dict[str, Any]]:
    """Return all recorded runs of workloads."""
    journal = folder / "ran.jsonl"
    if journal.exists():
        yield from map(json.loads, journal.read_text().splitlines())


def _wait_for(path: Path) -> None:
    """Wait for a file, unless the test and its folder are gone."""
    while not path.exists() and path.parent.exists():
        time.sleep(LOOK_SECONDS)


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]
