/** What a lot was made from, down to deposits, files and digests. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/hooks";
import { ButtonLink } from "../../kit/Button";
import { DatasetName, JobName, LotName } from "../../kit/Names";
import { Pick } from "../../kit/Pick";
import { PageHead, Panel } from "../../kit/Panel";
import { Empty, Shown } from "../../kit/Shown";
import { Status, Tag } from "../../kit/Status";
import { Tree } from "../../kit/Tree";
import { plural } from "../../kit/words";
import { Link } from "../../router/Link";
import { address, usePlace, useQuery, withQuery } from "../../router/router";
import { lotPlace } from "../../router/places";
import { wholeTime } from "../replay/targets";
import { type Ancestry, ancestryOf } from "./history";
import "./provenance.css";
import { Version } from "./Version";

const FILES = 50;

export default function Provenance() {
  const [query] = useQuery();
  const [namespace, dataset, lot] = [query.get("namespace"), query.get("dataset"), query.get("lot")];
  const isNamed = namespace && dataset && lot;
  return (
    <>
      <PageHead
        title="Provenance"
        actions={
          isNamed && (
            <>
              <ButtonLink to={lotPlace({ namespace, name: dataset }, lot)} icon="file">
                The lot
              </ButtonLink>
              <ButtonLink to={address(["replay", "new"], { namespace, dataset, lot })} icon="replay">
                Replay
              </ButtonLink>
            </>
          )
        }
      >
        {isNamed && (
          <span>
            of <LotName dataset={{ namespace, name: dataset }} lot={lot} /> of <DatasetName of={{ namespace, name: dataset }} whole />
          </span>
        )}
      </PageHead>
      <Pick
        kind="dataset"
        fields={[
          { name: "lot", label: "Lot", hint: "20261115PT1H09", needed: true },
          { name: "asOf", label: "As of (UTC)", hint: "now" },
        ]}
        verb="Show"
      />
      {isNamed ? (
        <Found path={{ namespace, dataset, lot }} asOf={wholeTime(query.get("asOf"))} />
      ) : (
        <Empty icon="file" title="Choose a lot">
          What it was made from is shown as a tree: which runs of which jobs read what, down to the deposits and files that came from outside.
        </Empty>
      )}
    </>
  );
}

function Found({ path, asOf }: { path: { namespace: string; dataset: string; lot: string }; asOf: string | null }) {
  const [query] = useQuery();
  const found = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/provenance", { path, query: { files: FILES, ...(asOf ? { asOf } : {}) } });
  return (
    <Shown of={found}>
      {(value) => {
        const tree = ancestryOf(value.versions);
        const chosen = tree.version(query.get("version") ?? "") ?? value.versions[0];
        return (
          <div className="provenance-halves">
            <Panel title="Made from" aside={`${plural(value.versions.length, "version")}${value.isCurrent ? "" : ", not the current one"}${value.isWhole ? "" : "; more is behind than can be shown at once"}`}>
              <Tree label="what it was made from" roots={[tree.root]} below={tree.below} line={(key) => <Line tree={tree} id={key} chosen={chosen?.id} />} />
            </Panel>
            {chosen && <Version key={chosen.id} of={chosen} />}
          </div>
        );
      }}
    </Shown>
  );
}

function Line({ tree, id, chosen }: { tree: Ancestry; id: string; chosen: string | undefined }) {
  const { query, path } = usePlace();
  const version = tree.version(id);
  if (!version) return null;
  return (
    <>
      <Link className="name" to={path + withQuery(query, { version: version.id })} aria-current={version.id === chosen ? "true" : undefined}>
        {version.dataset}
        {version.lot && <span className="mono"> {version.lot}</span>}
      </Link>
      <span className="faint">V{version.number}</span>
      {version.contents && <Status of={version.contents.state} />}
      {tree.isAgain(id) ? <span className="faint">told above</span> : <From version={version} />}
      {version.isCut && <Tag>deeper than was asked</Tag>}
    </>
  );
}

function From({ version }: { version: Schemas["LotVersion"] }) {
  if (version.run) {
    return (
      <span className="faint">
        by <JobName of={version.run.job} />
      </span>
    );
  }
  const deposit = version.deposits[0];
  if (deposit) return <span className="faint">deposited by {deposit.depositor ?? "somebody"}</span>;
  if (version.outside?.arrivedCount) return <span className="faint">arrived by itself</span>;
  return <span className="faint">registered by {version.outside?.registeredBy ?? "somebody"}</span>;
}
