"""The facets that mean something to the catalog; all others are kept as they are.

A facet that does not have the shape its name promises is kept too, and means nothing.
"""

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from penstock import ids
from penstock.catalog.events.facets import REMEMBERED_MAX, Facets, is_deleted
from penstock.clock import Micros, parse_time
from penstock.errors import Invalid
from penstock.ids import NAME_BYTES_MAX

T = TypeVar("T")

LIFECYCLE: Final = "lifecycleStateChange"
COLUMNS: Final = "columnLineage"
ALL_FIELDS: Final = ""  # no field has an empty name
ASSERTIONS: Final = "dataQualityAssertions"
EXPECTATIONS: Final = "greatExpectations_assertions"
METRICS: Final = "dataQualityMetrics"
STATISTICS: Final = "outputStatistics"
LOT_FACET: Final = "penstock_lot"
# Facets about the content of one version; the next version does not inherit them.
OF_ONE_VERSION: Final = frozenset(
    {
        *(LIFECYCLE, ASSERTIONS, EXPECTATIONS, METRICS, STATISTICS, LOT_FACET),
        *("version", "datasetVersion", "dataQuality"),
    }
)
CHECKS: Final = (ASSERTIONS, EXPECTATIONS, METRICS)


class ParentRun(Struct, frozen=True):
    """The run that started this one."""

    run_id: str
    external_id: str | None
    namespace: str
    name: str


class DatasetName(Struct, frozen=True, order=True):
    """A dataset by its names."""

    namespace: str
    name: str


class Alias(Struct, frozen=True):
    """Another name of a dataset."""

    namespace: str
    name: str
    type: str = "TABLE"


class DataSource(Struct, frozen=True):
    """Where a dataset physically lives."""

    name: str | None = None
    uri: str | None = None


class TagMark(Struct, frozen=True):
    """A tag on a dataset, one of its fields, or a job."""

    name: str
    field: str | None


class ColumnInput(Struct, frozen=True):
    """That a field of an output, or every field, depends on a field of an input.

    Indirectly, where the input field decides which rows there are or how they stand, as the key of
    a join, a filter or a sort does, and its value is in no field.
    """

    field: str  # "" stands for every field
    namespace: str
    name: str
    input_field: str
    description: str | None
    type: str | None
    indirect: bool = False


class _RunName(Struct):
    runId: str


class _Parent(Struct):
    run: _RunName
    job: DatasetName


class _NominalTime(Struct):
    nominalStartTime: str
    nominalEndTime: str | None = None


class _Documentation(Struct):
    description: str


class _CodeLocation(Struct):
    url: str


class _JobType(Struct):
    processingType: str


class _JobLabels(Struct):
    jobType: str | None = None
    integration: str | None = None


class _Lifecycle(Struct):
    lifecycleStateChange: str


class _Symlinks(Struct):
    identifiers: list[Alias]


class _Tag(Struct):
    key: str
    value: Any = None
    field: str | None = None


class _Tags(Struct):
    tags: list[_Tag]


class _Transformation(Struct):
    type: str | None = None
    subtype: str | None = None
    description: str | None = None


class _InputField(Struct):
    namespace: str
    name: str
    field: str
    transformations: list[_Transformation] | None = None


class _ColumnInputs(Struct):
    inputFields: list[_InputField] = field(default_factory=list)
    transformationDescription: str | None = None
    transformationType: str | None = None


class _ColumnLineage(Struct):
    fields: dict[str, _ColumnInputs]
    dataset: list[_InputField] = field(default_factory=list)


class _Reader(Generic[T]):
    """Reads one kind of facet; the same short text is read once."""

    def __init__(self, shape: type[T]) -> None:
        decode = msgspec.json.Decoder(shape).decode

        def read(raw: bytes) -> T | None:
            try:
                return decode(raw)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                return None

        self._read = read
        self._remembered = lru_cache(maxsize=4096)(read)

    def __call__(self, facets: Facets, name: str) -> T | None:
        raw = facets.get(name)
        if raw is None:
            return None
        text = bytes(raw)
        return self._remembered(text) if len(text) <= REMEMBERED_MAX else self._read(text)


_read_parent = _Reader(_Parent)
_read_nominal_time = _Reader(_NominalTime)
_read_documentation = _Reader(_Documentation)
_read_code_location = _Reader(_CodeLocation)
_read_job_type = _Reader(_JobType)
_read_job_labels = _Reader(_JobLabels)
_read_lifecycle = _Reader(_Lifecycle)
_read_data_source = _Reader(DataSource)
_read_symlinks = _Reader(_Symlinks)
_read_tags = _Reader(_Tags)
_read_column_lineage = _Reader(_ColumnLineage)


def _names(*names: str | None) -> bool:
    """Whether what a facet brings along could name things that have a path."""
    return _fits(*names) and ids.DOTS.isdisjoint(names)


def _fits(*names: str | None) -> bool:
    """Whether names that a facet brings along could stand where checked names stand.

    The setting for names in requests may be lower: facets are read where no request is at hand,
    and a name in them that is too long is no reason to refuse an event.
    """
    return all(n and len(n.encode()) <= NAME_BYTES_MAX and "\x00" not in n for n in names)


def _is_deleted(facets: Facets, name: str) -> bool:
    facet = facets.get(name)
    return facet is not None and is_deleted(facet)


def parent(facets: Facets) -> ParentRun | None:
    """The `parent` facet, or `parentRun` as older clients call it."""
    if "parent" not in facets and "parentRun" not in facets:
        return None
    found = _read_parent(facets, "parent") or _read_parent(facets, "parentRun")
    if found is None or not _names(found.run.runId, found.job.namespace, found.job.name):
        return None
    run_id = ids.run_id(found.run.runId)
    external = found.run.runId if run_id != found.run.runId else None
    return ParentRun(run_id, external, found.job.namespace, found.job.name)


def nominal_times(facets: Facets) -> tuple[Micros | None, Micros | None] | None:
    """The interval a run is meant for."""
    found = _read_nominal_time(facets, "nominalTime")
    if found is None:
        return None
    try:
        end = parse_time(found.nominalEndTime) if found.nominalEndTime else None
        return parse_time(found.nominalStartTime), end
    except Invalid:
        return None


def documentation(facets: Facets) -> str | None:
    """What a job or dataset says of itself; nothing ("") where that is deleted."""
    if _is_deleted(facets, "documentation"):
        return ""
    found = _read_documentation(facets, "documentation")
    return _clean(found.description) if found else None


def code_location(facets: Facets) -> str | None:
    """Where a job's code is."""
    found = _read_code_location(facets, "sourceCodeLocation")
    return _clean(found.url) if found else None


def job_type(facets: Facets) -> str | None:
    """BATCH or STREAM, where the event says which."""
    found = _read_job_type(facets, "jobType")
    if found is None:
        return None
    return {"BATCH": "BATCH", "STREAMING": "STREAM"}.get(found.processingType.upper())


def job_labels(facets: Facets) -> list[str]:
    """The type of a job and its integration, as Marquez labels it."""
    found = _read_job_labels(facets, "jobType")
    labels = (found.jobType, found.integration) if found else ()
    return [_clean(label) for label in labels if label]


def lifecycle(facets: Facets) -> str | None:
    """What happened to the dataset as a whole: CREATE, ALTER, OVERWRITE, TRUNCATE, RENAME, DROP."""
    found = _read_lifecycle(facets, LIFECYCLE)
    return _clean(found.lifecycleStateChange).upper() if found else None


def data_source(facets: Facets) -> DataSource | None:
    """Where the dataset physically lives."""
    found = _read_data_source(facets, "dataSource")
    if found is None or not _names(found.name):
        return None
    return DataSource(found.name, _clean(found.uri or "") or None)


def aliases(facets: Facets) -> list[Alias]:
    """Other names of the dataset."""
    found = _read_symlinks(facets, "symlinks")
    named = found.identifiers if found else []
    return [each for each in named if _names(each.namespace, each.name) and _fits(each.type)]


def of_reading(facets: Facets, input_facets: Facets) -> Facets:
    """What a run says of a dataset as it has read it.

    Some who check it say so in the dataset's own facets, which are otherwise its maker's.
    """
    checks = {name: facets[name] for name in CHECKS if name in facets}
    return {**checks, **input_facets} if checks else input_facets


def tags(facets: Facets) -> list[TagMark]:
    """Tags; `key` where the value says no more than that it is set, else `key:value`."""
    found = _read_tags(facets, "tags")
    if found is None:
        return []
    marks = []
    for tag in found.tags:
        plain = tag.value in (None, "", True, "true", tag.key)  # Airflow's have their key for value
        name = tag.key if plain else f"{tag.key}:{tag.value}"
        if _names(name) and (tag.field is None or _fits(tag.field)):
            marks.append(TagMark(name, tag.field))
    return marks


def column_inputs(facets: Facets) -> list[ColumnInput] | None:
    """Which fields are made from which; None where the event says nothing of it."""
    if _is_deleted(facets, COLUMNS):
        return []
    found = _read_column_lineage(facets, COLUMNS)
    if found is None:
        return None
    inputs = [
        ColumnInput(
            name,
            source.namespace,
            source.name,
            source.field,
            *_transformation(column, source.transformations),
            indirect=_is_indirect(source.transformations),
        )
        for name, column in found.fields.items()
        for source in column.inputFields
        if _names(source.namespace, source.name) and _fits(name, source.field)
    ]
    return inputs + [
        ColumnInput(
            ALL_FIELDS,
            source.namespace,
            source.name,
            source.field,
            *_transformation(_ColumnInputs(), source.transformations),
            indirect=True,
        )
        for source in found.dataset
        if _names(source.namespace, source.name) and _fits(source.field)
    ]


def _is_indirect(steps: list[_Transformation] | None) -> bool:
    return bool(steps) and all((step.type or "").upper() == "INDIRECT" for step in steps or ())


def columns_stated(facets: Facets) -> Collection[str]:
    """The fields of which the column lineage says from which others they are made."""
    stated = _read_column_lineage(facets, COLUMNS)
    return stated.fields.keys() if stated is not None else ()


def without_columns(facets: Facets, removed: Collection[str]) -> Facets:
    """The column lineage alone, without that of some fields."""
    facet = msgspec.json.decode(facets[COLUMNS], type=dict[str, Raw])
    fields = msgspec.json.decode(facet["fields"], type=dict[str, Raw])
    kept = {name: column for name, column in fields.items() if name not in removed}
    facet["fields"] = Raw(msgspec.json.encode(kept))
    return {COLUMNS: Raw(msgspec.json.encode(facet))}


def _transformation(
    column: _ColumnInputs, steps: list[_Transformation] | None
) -> tuple[str | None, str | None]:
    """How a field is made: what its column says, else the steps of its input.

    Of several steps, one that is direct counts; if there is none, all of them.
    """
    steps = steps or [_Transformation()]
    direct = [step for step in steps if (step.type or "").upper() != "INDIRECT"][:1]
    counted = direct or steps
    described = (step.description for step in counted if step.description)
    description = column.transformationDescription or next(described, None)
    kinds = dict.fromkeys(kind for step in counted if (kind := step.subtype or step.type))
    kind = column.transformationType or ", ".join(kinds)
    return _clean(description or "") or None, _clean(kind or "") or None


def _clean(text: str) -> str:
    return text.replace("\x00", "")
