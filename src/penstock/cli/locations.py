"""Where the datasets of a job are, and what a command's environment calls them."""

from collections.abc import Mapping, Sequence

from penstock.arcs.naming import variable_names
from penstock.client import Client
from penstock.client.documents import EntityId
from penstock.client.lot_documents import Wiring
from penstock.client.names import read_name
from penstock.errors import Invalid

Locations = Mapping[EntityId, str]


def read_locations(given: Sequence[str], wiring: Wiring) -> dict[EntityId, str]:
    """What `--location DATASET=PATH` says; every dataset must be one of the job's."""
    known = [*wiring.inputs, *wiring.outputs]
    found = {}
    for text in given:
        dataset, equals, place = text.partition("=")
        if not equals or not place:
            raise Invalid(f"--location {text!r} names no place; write DATASET=PATH")
        named = read_name(dataset, wiring.namespace)
        if named not in known:
            names = ", ".join(f"{each.namespace}/{each.name}" for each in known)
            raise Invalid(f"--location: {dataset!r} is no dataset of this job, which has {names}")
        found[named] = place
    return found


class Surroundings:
    """Where the datasets of a job are, as a command's environment has it: as given, or else as the
    catalog has it. A job can be wired to others while a worker goes on.
    """

    def __init__(self, client: Client, given: Locations) -> None:
        self._client = client
        self._given = given
        self._sides: tuple[Sequence[EntityId], Sequence[EntityId]] | None = None
        self._variables: Mapping[str, str] = {}

    def variables(self, inputs: Sequence[EntityId], outputs: Sequence[EntityId]) -> dict[str, str]:
        """The variables for these datasets, and the server's address."""
        if self._sides != (inputs, outputs):
            places = {named: self._place(named) for named in dict.fromkeys((*inputs, *outputs))}
            self._variables = location_variables(inputs, outputs, places)
            self._sides = inputs, outputs
        return {"PENSTOCK_URL": self._client.url, **self._variables}

    def _place(self, named: EntityId) -> str:
        return self._given.get(named) or _in_catalog(self._client, named)


def _in_catalog(client: Client, named: EntityId) -> str:
    """The dataset's physical name, below its source where that is a place."""
    dataset = client.dataset(named.namespace, named.name)
    if _is_place(dataset.physical_name):
        return dataset.physical_name
    url = client.source(dataset.source_name).connection_url
    return (
        f"{url.removesuffix('/')}/{dataset.physical_name}"
        if _is_place(url)
        else (dataset.physical_name)
    )


def _is_place(text: str) -> bool:
    return "://" in text or text.startswith("/")


def location_variables(
    inputs: Sequence[EntityId], outputs: Sequence[EntityId], places: Locations
) -> dict[str, str]:
    """PENSTOCK_INPUT_… and PENSTOCK_OUTPUT_…, one variable for each dataset."""
    return {
        **_variables("PENSTOCK_INPUT", inputs, places),
        **_variables("PENSTOCK_OUTPUT", outputs, places),
    }


def _variables(prefix: str, datasets: Sequence[EntityId], places: Locations) -> dict[str, str]:
    names = variable_names(prefix, [(each.namespace, each.name) for each in datasets])
    if len(set(names)) < len(names):
        shown = ", ".join(f"{each.namespace}/{each.name}" for each in datasets)
        raise Invalid(f"no two variables can be made for {shown}; their names are too much alike")
    return {name: places[each] for name, each in zip(names, datasets, strict=True)}
