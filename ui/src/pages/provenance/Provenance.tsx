/** The provenance of a lot, down to deposits, files and digests. */
import type { Schemas } from "../../api/client";
import { useGet } from "../../api/queries";
import { ButtonLink } from "../../kit/Button";
import { DatasetLink, JobLink, LotLink } from "../../kit/links";
import { TargetPicker } from "../../kit/TargetPicker";
import { PageHead, Panel } from "../../kit/Panel";
import { EmptyState, Async } from "../../kit/Async";
import { Status, Tag } from "../../kit/Status";
import { Tree } from "../../kit/Tree";
import { plural } from "../../kit/format";
import { Link } from "../../router/Link";
import { address, useLocation, useSearchParams, withQuery } from "../../router/router";
import { lotAddress } from "../../router/addresses";
import { wholeTime } from "../replay/targets";
import { type Ancestry, ancestryOf } from "./ancestry";
import "./provenance.css";
import { VersionDetails } from "./Version";

const FILES = 50;

export default function Provenance() {
  const [query] = useSearchParams();
  const [namespace, dataset, lot] = [
    query.get("namespace"),
    query.get("dataset"),
    query.get("lot"),
  ];
  const isNamed = namespace && dataset && lot;
  return (
    <>
      <PageHead
        title="Provenance"
        actions={
          isNamed && (
            <>
              <ButtonLink to={lotAddress({ namespace, name: dataset }, lot)} icon="file">
                Open lot
              </ButtonLink>
              <ButtonLink
                to={address(["replay", "new"], { namespace, dataset, lot })}
                icon="replay"
              >
                Replay
              </ButtonLink>
            </>
          )
        }
      >
        {isNamed && (
          <span>
            of <LotLink dataset={{ namespace, name: dataset }} lot={lot} /> of{" "}
            <DatasetLink of={{ namespace, name: dataset }} whole />
          </span>
        )}
      </PageHead>
      <TargetPicker
        kind="dataset"
        fields={[
          { name: "lot", label: "Lot", hint: "20261115PT1H09", needed: true },
          { name: "asOf", label: "As of (UTC)", hint: "now" },
        ]}
        verb="Show"
      />
      {isNamed ? (
        <LotProvenance path={{ namespace, dataset, lot }} asOf={wholeTime(query.get("asOf"))} />
      ) : (
        <EmptyState icon="file" title="Choose a lot">
          The tree shows the inputs of the lot and the runs that read them, down to the deposits and
          files from outside.
        </EmptyState>
      )}
    </>
  );
}

function LotProvenance({
  path,
  asOf,
}: {
  path: { namespace: string; dataset: string; lot: string };
  asOf: string | null;
}) {
  const [query] = useSearchParams();
  const result = useGet("/api/v1/namespaces/{namespace}/datasets/{dataset}/lots/{lot}/provenance", {
    path,
    query: { files: FILES, ...(asOf ? { asOf } : {}) },
  });
  return (
    <Async of={result}>
      {(value) => {
        const tree = ancestryOf(value.versions);
        const chosen = tree.version(query.get("version") ?? "") ?? value.versions[0];
        return (
          <div className="provenance-halves">
            <Panel
              title="Made from"
              aside={`${plural(value.versions.length, "version")}${value.isCurrent ? "" : ", not the current one"}${value.isWhole ? "" : "; the tree is truncated"}`}
            >
              <Tree
                label="provenance of the lot"
                roots={[tree.root]}
                below={tree.below}
                line={(key) => <VersionLine tree={tree} id={key} chosen={chosen?.id} />}
              />
            </Panel>
            {chosen && <VersionDetails key={chosen.id} of={chosen} />}
          </div>
        );
      }}
    </Async>
  );
}

function VersionLine({
  tree,
  id,
  chosen,
}: {
  tree: Ancestry;
  id: string;
  chosen: string | undefined;
}) {
  const { query, path } = useLocation();
  const version = tree.version(id);
  if (!version) return null;
  return (
    <>
      <Link
        className="name"
        to={path + withQuery(query, { version: version.id })}
        aria-current={version.id === chosen ? "true" : undefined}
      >
        {version.dataset}
        {version.lot && <span className="mono"> {version.lot}</span>}
      </Link>
      <span className="faint">V{version.number}</span>
      {version.contents && <Status of={version.contents.state} />}
      {tree.isAgain(id) ? (
        <span className="faint">see above</span>
      ) : (
        <VersionOrigin version={version} />
      )}
      {version.isCut && <Tag>truncated</Tag>}
    </>
  );
}

function VersionOrigin({ version }: { version: Schemas["LotVersion"] }) {
  if (version.run) {
    return (
      <span className="faint">
        by <JobLink of={version.run.job} />
      </span>
    );
  }
  const deposit = version.deposits[0];
  if (deposit) return <span className="faint">deposited by {deposit.depositor ?? "unknown"}</span>;
  if (version.outside?.arrivedCount)
    return <span className="faint">arrived in a watched location</span>;
  return <span className="faint">registered by {version.outside?.registeredBy ?? "unknown"}</span>;
}
