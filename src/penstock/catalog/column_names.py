"""What datasets are called of which only the column lineage of others tells.

Column lineage keeps the ids of datasets. Some that it speaks of were never named otherwise, as dbt
leaves out sources of its models: those are no datasets of the catalog, and have no version. What
they are called stands in the facet that speaks of them.
"""

from collections.abc import Iterable

from penstock import ids
from penstock.catalog.facets import read_facets
from penstock.catalog.known_facets import DatasetName, column_inputs


def names_told(facets: Iterable[str]) -> dict[str, DatasetName]:
    """The names of all datasets that the column lineage in these sets speaks of, by id."""
    found = {}
    for text in facets:
        for stated in column_inputs(read_facets(text)) or ():
            name = DatasetName(stated.namespace, stated.name)
            found[ids.dataset_id(name.namespace, name.name)] = name
    return found
