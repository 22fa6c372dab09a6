"""What the arcs of the demo do with a day's readings of river gauges."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.arcs.workload.task import Context, InputLot

FLOOD_CM = 400
FLAKY_STATION = "south"
FOLDER = "PENSTOCK_DEMO_FOLDER"  # the variable that says where the demo keeps its notes


class GaugeReading(NamedTuple):
    """One line of a gauge."""

    station: str
    hour: int
    level_cm: int


def by_station(inputs: Sequence[InputLot]) -> Mapping[str, Sequence[str]]:
    """The files of each station."""
    parts: dict[str, list[str]] = {}
    for lot in inputs:
        for item in lot.uris:
            parts.setdefault(_name(item.uri).partition("-")[0], []).append(item.uri)
    return parts


def clean(context: Context) -> None:
    """Leave out what a gauge cannot have measured; the part of one station fails at first."""
    if context.part == FLAKY_STATION:
        _stumble_once(context.lot)
    lines = [line for line in _readings(context) if line.level_cm >= 0]
    context.write(f"{context.part}.csv", _csv(lines))


def has_every_hour(context: Context) -> bool:
    """Whether no hour is without a reading."""
    text = b"".join(context.read(uri) for uri in context.made())
    hours = [line.hour for line in _parsed(text)]
    return sorted(hours) == list(range(len(hours)))


def alerts(context: Context) -> None:
    """Keep the readings of a flood; on most days there are none."""
    high = [line for line in _readings(context) if line.level_cm > FLOOD_CM]
    if high:
        context.write("alerts.csv", _csv(high))
    else:
        context.empty()


def totals(context: Context) -> None:
    """The highest and the mean level of each station."""
    levels: dict[str, list[int]] = {}
    for line in _readings(context):
        levels.setdefault(line.station, []).append(line.level_cm)
    rows = [
        f"{station},{max(found)},{sum(found) / len(found):.1f}\n"
        for station, found in sorted(levels.items())
    ]
    context.write("totals.csv", "".join(["station,max_cm,mean_cm\n", *rows]).encode())


def bulletin(context: Context) -> None:
    """The day in words: the totals, joined with the alerts."""
    [totals] = context.inputs["totals"].uris
    stations = list(csv.DictReader(io.StringIO(context.read(totals.uri).decode())))
    floods = sum(context.read(item.uri).count(b"\n") for item in context.inputs["alerts"].uris)
    lines = [f"{row['station']}: {row['mean_cm']} cm, at most {row['max_cm']}" for row in stations]
    lines.append(f"{floods} alerts" if floods else "no alerts")
    context.write("bulletin.txt", "".join(f"{line}\n" for line in lines).encode())


def smooth(context: Context) -> None:
    """A lot of the weather, as it is."""
    context.write("weather.txt", f"weather of {context.lot}\n".encode())


def _stumble_once(lot: str) -> None:
    marker = Path(os.environ[FOLDER]) / f"stumbled-{lot}"
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return
    raise RuntimeError("the gauge's clock could not be reached")


def _readings(context: Context) -> Iterator[GaugeReading]:
    for uri in sorted(context.uris, key=_name):
        yield from _parsed(context.read(uri))


def _parsed(text: bytes) -> Iterator[GaugeReading]:
    for station, hour, level in csv.reader(io.StringIO(text.decode())):
        yield GaugeReading(station, int(hour), int(level))


def _csv(lines: Iterable[GaugeReading]) -> bytes:
    return "".join(f"{line.station},{line.hour},{line.level_cm}\n" for line in lines).encode()


def _name(uri: str) -> str:
    return uri.rpartition("/")[2]
