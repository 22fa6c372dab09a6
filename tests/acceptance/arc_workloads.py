"""Workloads of arcs that do what a test has ordered, and note that they ran.

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
    """The test wants it so."""


def shout(context: Context) -> None:
    """Copy everything in capitals; of nothing there is nothing."""
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
    """One object: what each input has, by the names of datasets and objects."""
    obey(context)
    lines = [
        f"{name}/{_name(item.uri)}: {context.read(item.uri).decode()}"
        for name, lot in sorted(context.inputs.items())
        for item in lot.uris
    ]
    context.write("joined.txt", "\n".join(sorted(lines)).encode())


def be_empty(context: Context) -> None:
    """Say that there is nothing, and that this is right."""
    obey(context)
    context.empty()


def forget(context: Context) -> None:
    """Write nothing, and do not declare that this is right."""
    obey(context)


def forget_b(context: Context) -> None:
    """Copy what is in `a` files, and write nothing for a part without any."""
    for uri in context.uris:
        if _name(uri).startswith("a"):
            context.write(_name(uri), context.read(uri))


def write_some(context: Context) -> None:
    """Write something, whatever there is to read."""
    obey(context)
    context.write("some.txt", b"some")


def spill(context: Context) -> None:
    """Copy everything into the output `loud`."""
    for uri in context.uris:
        context.write(_name(uri), context.read(uri), output="loud")


def doubt(context: Context) -> None:
    """Copy everything in capitals, and say of each object whether it is good."""
    shout(context)
    for uri in context.uris:
        is_good = b"bad" not in context.read(uri)
        context.check("no bad words", is_good, field=_name(uri), detail="" if is_good else "bad")


def nothing_bad(context: Context) -> None:
    """A check: nothing that was made has a bad word in it."""
    for uri in context.made():
        assert b"BAD" not in context.read(uri), f"{_name(uri)} has a bad word"


def is_not_empty(context: Context) -> bool:
    """A check: something was made."""
    return bool(context.made())


def broken_check(context: Context) -> bool:
    """A check that cannot be made."""
    raise OrderedFailure("no ruler at hand")


def one_part_each(inputs: Sequence[InputLot]) -> dict[str, list[str]]:
    """A part for each object, named after it."""
    return {_name(item.uri): [item.uri] for lot in inputs for item in lot.uris}


def parts_as_ordered(inputs: Sequence[InputLot]) -> dict[str, list[str]]:
    """Parts as the file `groups.json` says, by the names of objects."""
    groups = json.loads((Path(os.environ[FOLDER]) / "groups.json").read_text())
    uris = {_name(item.uri): item.uri for lot in inputs for item in lot.uris}
    return {part: [uris[name] for name in names] for part, names in groups.items()}


def no_parts(inputs: Sequence[InputLot]) -> None:
    """Not what a function for parts should be."""


def refuse_parts(inputs: Sequence[InputLot]) -> dict[str, list[str]]:
    """A function for parts that ends the process, or would."""
    sys.exit("it cannot be divided")


def obey(context: Context) -> None:
    """Take what was ordered for this lot and part, note this run, then do what was ordered.

    Whoever is killed once he is noted has left no order to the next.
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
    """The file with the orders for a part of a lot, one in a line."""
    return f"orders-{quote(lot, safe='')}-{quote(part, safe='')}"


def ran(folder: Path) -> Iterator[dict[str, Any]]:
    """Every run of a workload there was."""
    journal = folder / "ran.jsonl"
    if journal.exists():
        yield from map(json.loads, journal.read_text().splitlines())


def _wait_for(path: Path) -> None:
    """Wait for a file; nothing is waited for once the test and its folder are gone."""
    while not path.exists() and path.parent.exists():
        time.sleep(LOOK_SECONDS)


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]
