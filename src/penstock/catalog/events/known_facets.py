"""The facets that the catalog interprets; it stores all others unchanged.

A facet without the expected shape is stored too and has no effect.
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


class ReportedParent(Struct, frozen=True):
    """The parent of a run."""

    run_id: str
    external_id: str | None
    namespace: str
    name: str


class DatasetName(Struct, frozen=True, order=True):
    """The namespace and name of a dataset."""

    namespace: str
    name: str


class ReportedAlias(Struct, frozen=True):
    """Another name of a dataset."""

    namespace: str
    name: str
    type: str = "TABLE"


class DataSource(Struct, frozen=True):
    """The data source of a dataset."""

    name: str | None = None
    uri: str | None = None


class TagMark(Struct, frozen=True):
    """A tag on a dataset, one of its fields, or a job."""

    name: str
    field: str | None


class ColumnInput(Struct, frozen=True):
    """A dependency of an output field, or of every field, on an input field.

    It is indirect if the input field only decides which rows exist or their order: a join key, a
    filter, a sort.
    """

    field: str  # "" means every field
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
    identifiers: list[ReportedAlias]


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
    """A decoder for one kind of facet; short texts are decoded once."""

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
    """Return whether all names in a facet are legal names."""
    return _fits(*names) and ids.DOTS.isdisjoint(names)


def _fits(*names: str | None) -> bool:
    """Return whether names in a facet are legal.

    The limit for request names may be lower. A name in a facet that is too long is no reason to
    refuse an event.
    """
    return all(n and len(n.encode()) <= NAME_BYTES_MAX and "\x00" not in n for n in names)


def _is_deleted(facets: Facets, name: str) -> bool:
    facet = facets.get(name)
    return facet is not None and is_deleted(facet)


def parent(facets: Facets) -> ReportedParent | None:
    """Return the `parent` facet, or `parentRun` of older clients."""
    if "parent" not in facets and "parentRun" not in facets:
        return None
    facet = _read_parent(facets, "parent") or _read_parent(facets, "parentRun")
    if facet is None or not _names(facet.run.runId, facet.job.namespace, facet.job.name):
        return None
    run_id = ids.run_id(facet.run.runId)
    external = facet.run.runId if run_id != facet.run.runId else None
    return ReportedParent(run_id, external, facet.job.namespace, facet.job.name)


def nominal_times(facets: Facets) -> tuple[Micros | None, Micros | None] | None:
    """Return the nominal interval of a run."""
    facet = _read_nominal_time(facets, "nominalTime")
    if facet is None:
        return None
    try:
        end = parse_time(facet.nominalEndTime) if facet.nominalEndTime else None
        return parse_time(facet.nominalStartTime), end
    except Invalid:
        return None


def documentation(facets: Facets) -> str | None:
    """Return the description of a job or dataset; "" if it was deleted."""
    if _is_deleted(facets, "documentation"):
        return ""
    facet = _read_documentation(facets, "documentation")
    return _clean(facet.description) if facet else None


def code_location(facets: Facets) -> str | None:
    """Return the code location of a job."""
    facet = _read_code_location(facets, "sourceCodeLocation")
    return _clean(facet.url) if facet else None


def job_type(facets: Facets) -> str | None:
    """Return BATCH or STREAM, if the event states it."""
    facet = _read_job_type(facets, "jobType")
    if facet is None:
        return None
    return {"BATCH": "BATCH", "STREAMING": "STREAM"}.get(facet.processingType.upper())


def job_labels(facets: Facets) -> list[str]:
    """Return the type of a job and its integration, as Marquez labels it."""
    facet = _read_job_labels(facets, "jobType")
    labels = (facet.jobType, facet.integration) if facet else ()
    return [_clean(label) for label in labels if label]


def lifecycle(facets: Facets) -> str | None:
    """Return the lifecycle change: CREATE, ALTER, OVERWRITE, TRUNCATE, RENAME or DROP."""
    facet = _read_lifecycle(facets, LIFECYCLE)
    return _clean(facet.lifecycleStateChange).upper() if facet else None


def data_source(facets: Facets) -> DataSource | None:
    """Return the data source of a dataset."""
    facet = _read_data_source(facets, "dataSource")
    if facet is None or not _names(facet.name):
        return None
    return DataSource(facet.name, _clean(facet.uri or "") or None)


def aliases(facets: Facets) -> list[ReportedAlias]:
    """Return the second names of a dataset."""
    facet = _read_symlinks(facets, "symlinks")
    named = facet.identifiers if facet else []
    return [each for each in named if _names(each.namespace, each.name) and _fits(each.type)]


def of_reading(facets: Facets, input_facets: Facets) -> Facets:
    """Return the facets that a run reports of a dataset that it read.

    Some checkers use the dataset's own facets, which otherwise belong to its writer.
    """
    checks = {name: facets[name] for name in CHECKS if name in facets}
    return {**checks, **input_facets} if checks else input_facets


def tags(facets: Facets) -> list[TagMark]:
    """Return tags: `key` if the value only says that it is set, else `key:value`."""
    facet = _read_tags(facets, "tags")
    if facet is None:
        return []
    marks = []
    for tag in facet.tags:
        plain = tag.value in (
            None,
            "",
            True,
            "true",
            tag.key,
        )  # Airflow repeats the key as the value
        name = tag.key if plain else f"{tag.key}:{tag.value}"
        if _names(name) and (tag.field is None or _fits(tag.field)):
            marks.append(TagMark(name, tag.field))
    return marks


def column_inputs(facets: Facets) -> list[ColumnInput] | None:
    """Return the dependencies between fields, or None if the event reports none."""
    if _is_deleted(facets, COLUMNS):
        return []
    facet = _read_column_lineage(facets, COLUMNS)
    if facet is None:
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
        for name, column in facet.fields.items()
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
        for source in facet.dataset
        if _names(source.namespace, source.name) and _fits(source.field)
    ]


def _is_indirect(steps: list[_Transformation] | None) -> bool:
    return bool(steps) and all((step.type or "").upper() == "INDIRECT" for step in steps or ())


def columns_stated(facets: Facets) -> Collection[str]:
    """Return the fields whose inputs the column lineage lists."""
    stated = _read_column_lineage(facets, COLUMNS)
    return stated.fields.keys() if stated is not None else ()


def without_columns(facets: Facets, removed: Collection[str]) -> Facets:
    """Return the column lineage without some fields."""
    facet = msgspec.json.decode(facets[COLUMNS], type=dict[str, Raw])
    fields = msgspec.json.decode(facet["fields"], type=dict[str, Raw])
    kept = {name: column for name, column in fields.items() if name not in removed}
    facet["fields"] = Raw(msgspec.json.encode(kept))
    return {COLUMNS: Raw(msgspec.json.encode(facet))}


def _transformation(
    column: _ColumnInputs, steps: list[_Transformation] | None
) -> tuple[str | None, str | None]:
    """Return the transformation of a field: that of its column, else of its input's steps.

    A direct step takes precedence over indirect ones.
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
