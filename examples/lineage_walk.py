"""Walk the lineage of a dataset with the asynchronous client and parallel calls.

    python examples/lineage_walk.py NAMESPACE DATASET

Prints each upstream dataset with its distance, its newest version and the run that made it. One
call returns the graph. The details of all datasets are requested in parallel.
"""

import asyncio
import sys
from collections import deque

from penstock import AsyncClient
from penstock.schema.lineage import DatasetNode, LineageGraph


def distances(graph: LineageGraph, start: str) -> dict[str, int]:
    """Return the number of steps from each upstream node."""
    makers = {node.id: [edge.origin for edge in node.in_edges] for node in graph.graph}
    steps, left = {start: 0}, deque([start])
    while left:
        node = left.popleft()
        for maker in makers.get(node, ()):
            if maker not in steps:
                steps[maker] = steps[node] + 1
                left.append(maker)
    return steps


async def described(client: AsyncClient, namespace: str, name: str, steps: int) -> str:
    """Return one line about a dataset."""
    versions = (await client.dataset_versions(namespace, name, limit=1)).versions
    if not versions:
        return f"{steps} {namespace}/{name} has no version yet"
    newest = versions[0]
    run = newest.created_by_run
    maker = f"run {run.id} of {run.job.name}" if run else "no known run"
    return f"{steps} {namespace}/{name} V{newest.number} by {maker}"


async def walk(namespace: str, name: str) -> None:
    """Print the upstream datasets, the nearest first."""
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
