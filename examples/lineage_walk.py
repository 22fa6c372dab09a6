"""Walk through the lineage of a dataset, many calls at a time, with the asynchronous client.

    python examples/lineage_walk.py NAMESPACE DATASET

Prints everything that the dataset was made from: how far away it is, when its current version was
made, and by which run. The graph is one call; the details of all its datasets are asked for side
by side.
"""

import asyncio
import sys
from collections import deque

from penstock import AsyncClient
from penstock.schema.lineage import DatasetNode, LineageGraph


def distances(graph: LineageGraph, start: str) -> dict[str, int]:
    """How many steps upstream each node is."""
    makers = {node.id: [edge.origin for edge in node.in_edges] for node in graph.graph}
    found, left = {start: 0}, deque([start])
    while left:
        node = left.popleft()
        for maker in makers.get(node, ()):
            if maker not in found:
                found[maker] = found[node] + 1
                left.append(maker)
    return found


async def described(client: AsyncClient, namespace: str, name: str, steps: int) -> str:
    """One line about a dataset."""
    versions = (await client.dataset_versions(namespace, name, limit=1)).versions
    if not versions:
        return f"{steps} {namespace}/{name} has no version yet"
    newest = versions[0]
    run = newest.created_by_run
    made = f"run {run.id} of {run.job.name}" if run else "nobody here"
    return f"{steps} {namespace}/{name} V{newest.number} by {made}"


async def walk(namespace: str, name: str) -> None:
    """Print the datasets upstream, the nearest first."""
    start = f"dataset:{namespace}:{name}"
    async with AsyncClient() as client:
        graph = await client.lineage(start, direction="upstream")
        steps = distances(graph, start)
        datasets = [node for node in graph.graph if isinstance(node, DatasetNode)]
        lines = await asyncio.gather(
            *(
                described(client, node.data.namespace, node.data.name, steps[node.id])
                for node in datasets
            )
        )
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    asyncio.run(walk(*sys.argv[1:3]))
