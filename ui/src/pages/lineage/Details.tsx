/** The details of the chosen node, beside the graph. */
import type { Schemas } from "../../api/client";
import { Button, ButtonLink } from "../../kit/Button";
import { Drawer } from "../../kit/Drawer";
import { DatasetLink, RunLink } from "../../kit/links";
import { Facts } from "../../kit/Panel";
import { Status, Tag } from "../../kit/Status";
import { Duration, Time } from "../../kit/Time";
import { datasetAddress, jobAddress } from "../../router/addresses";
import { fieldsOf, tagsOf } from "../runs/facets";
import type { LineageNode } from "./graph";

interface Props {
  node: LineageNode;
  isCollapsed: boolean;
  isRoot: boolean;
  onClose: () => void;
  onFocus: () => void;
  onCollapse: () => void;
}

export function Details({ node, isCollapsed, isRoot, onClose, onFocus, onCollapse }: Props) {
  const place = node.type === "JOB" ? jobAddress(node.data.id) : datasetAddress(node.data.id);
  return (
    <Drawer title={node.data.name} onClose={onClose}>
      <div className="row">
        <ButtonLink to={place} icon="right" kind="primary">
          Open
        </ButtonLink>
        {!isRoot && (
          <Button icon="focus" onClick={onFocus}>
            Focus
          </Button>
        )}
        {!isRoot && (
          <Button icon={isCollapsed ? "plus" : "minus"} onClick={onCollapse}>
            {isCollapsed ? "Expand" : "Collapse"}
          </Button>
        )}
      </div>
      {node.type === "JOB" ? <JobFacts job={node.data} /> : <DatasetFacts dataset={node.data} />}
    </Drawer>
  );
}

function JobFacts({ job }: { job: Schemas["JobData"] }) {
  const run = job.latestRun;
  const names = (ids: readonly Schemas["EntityId"][]) =>
    ids.map((id) => (
      <div key={`${id.namespace}/${id.name}`}>
        <DatasetLink of={id} />
      </div>
    ));
  return (
    <Facts
      of={[
        ["Namespace", job.namespace],
        ["Kind", job.type.toLowerCase()],
        ["Latest run", run ? <Status of={run.state} /> : "none yet"],
        ["Run", run && <RunLink of={run.id} />],
        ["Started", run && <Time at={run.startedAt} />],
        ["Took", run && <Duration from={run.startedAt} to={run.endedAt} />],
        ["Reads", job.inputs.length ? names(job.inputs) : "nothing"],
        ["Writes", job.outputs.length ? names(job.outputs) : "nothing"],
        ["Description", job.description],
      ]}
    />
  );
}

function DatasetFacts({ dataset }: { dataset: Schemas["DatasetData"] }) {
  const fields = fieldsOf(dataset.fields);
  return (
    <>
      <Facts
        of={[
          ["Namespace", dataset.namespace],
          ["Source", dataset.sourceName],
          [
            "Current version",
            dataset.currentVersionNumber ? `V${dataset.currentVersionNumber}` : "none",
          ],
          ["Changed", <Time at={dataset.lastModifiedAt ?? dataset.updatedAt} />],
          [
            "Tags",
            tagsOf(dataset.tags).length
              ? tagsOf(dataset.tags).map((tag) => <Tag key={tag}>{tag}</Tag>)
              : "none",
          ],
          ["Description", dataset.description],
        ]}
      />
      {fields.length > 0 && (
        <table className="plain-table">
          <thead>
            <tr>
              <th>field</th>
              <th>type</th>
            </tr>
          </thead>
          <tbody>
            {fields.map((field) => (
              <tr key={field.name}>
                <td className="mono">{field.name}</td>
                <td className="mono faint">{field.type}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}
