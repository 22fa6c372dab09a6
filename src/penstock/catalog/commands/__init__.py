"""The commands of the catalog, each a frozen value."""

from penstock.catalog.commands.datasets import (
    DeleteDataset,
    PutDataset,
    RestoreDataset,
    TagDataset,
    UntagDataset,
)
from penstock.catalog.commands.jobs import DeleteJob, PutJob, RestoreJob, TagJob, UntagJob
from penstock.catalog.commands.namespaces import (
    CreateDataset,
    CreateNamespace,
    DeleteNamespace,
    GrantNamespace,
    PutNamespace,
    PutSource,
    PutTag,
    RestoreNamespace,
    RevokeGrant,
)
from penstock.catalog.commands.runs import CreateRun, MarkRun, ReceiveEvent
from penstock.catalog.events.known_facets import DatasetName
from penstock.catalog.events.schema import Field

__all__ = [
    "CreateDataset",
    "CreateNamespace",
    "CreateRun",
    "DatasetName",
    "DeleteDataset",
    "DeleteJob",
    "DeleteNamespace",
    "Field",
    "GrantNamespace",
    "MarkRun",
    "PutDataset",
    "PutJob",
    "PutNamespace",
    "PutSource",
    "PutTag",
    "ReceiveEvent",
    "RestoreDataset",
    "RestoreJob",
    "RestoreNamespace",
    "RevokeGrant",
    "TagDataset",
    "TagJob",
    "UntagDataset",
    "UntagJob",
]
