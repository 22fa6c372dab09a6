/** The jobs that write and read a dataset, with the states of their latest runs. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { JobLink } from "../../kit/links";
import { Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status } from "../../kit/Status";
import { type Column, Rows } from "../../kit/Table";
import { Duration, Time } from "../../kit/Time";
import { datasetNode, jobAddress } from "../../router/addresses";

type JobNode = Schemas["JobNode"];

const COLUMNS: Column<JobNode>[] = [
  {
    title: "job",
    cell: (node) => <JobLink of={node.data.id} whole />,
    width: "minmax(10rem, 2fr)",
  },
  {
    title: "latest run",
    cell: (node) => (node.data.latestRun ? <Status of={node.data.latestRun.state} /> : "–"),
    width: "120px",
  },
  {
    title: "started",
    cell: (node) => <Time at={node.data.latestRun?.startedAt} />,
    width: "120px",
  },
  {
    title: "took",
    cell: (node) =>
      node.data.latestRun && (
        <Duration from={node.data.latestRun.startedAt} to={node.data.latestRun.endedAt} />
      ),
    width: "90px",
    end: true,
    wide: true,
  },
];

export function Neighbors({ dataset }: { dataset: Schemas["Dataset"] }) {
  const id = datasetNode(dataset.id);
  const graph = useGet("/api/v1/lineage", { query: { nodeId: id, hops: 1 } });
  return (
    <Async of={graph}>
      {(value) => {
        const jobs = value.graph.filter((node): node is JobNode => node.type === "JOB");
        const writers = jobs.filter((job) => job.outEdges.some((edge) => edge.destination === id));
        const readers = jobs.filter((job) => job.inEdges.some((edge) => edge.origin === id));
        return (
          <>
            <Jobs
              title="Written by"
              jobs={writers}
              none="No job has written it: it comes from outside."
            />
            <Jobs title="Read by" jobs={readers} none="No job has read it yet." />
          </>
        );
      }}
    </Async>
  );
}

function Jobs({ title, jobs, none }: { title: string; jobs: readonly JobNode[]; none: string }) {
  return (
    <Panel title={title} aside={jobs.length || undefined}>
      {jobs.length ? (
        <Rows of={jobs} columns={COLUMNS} label={title} to={(node) => jobAddress(node.data.id)} />
      ) : (
        <EmptyState icon="gear" title={none} />
      )}
    </Panel>
  );
}
