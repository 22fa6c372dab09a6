/** The stages side by side, with the jobs and bytes in each. */
import { INGEST_STATES, lookOf } from "../../kit/states";
import { count, size } from "../../kit/format";
import { Link } from "../../router/Link";
import { bytesIn, jobsIn, type Tally } from "./tally";

interface Props {
  tally: Tally;
  /** The address that a state links to. */
  to: (state: string) => string;
  chosen?: string | null;
}

export function Flow({ tally, to, chosen }: Props) {
  return (
    <nav className="flow" aria-label="jobs by stage">
      {INGEST_STATES.map((state) => {
        const look = lookOf(state);
        const jobs = jobsIn(tally, state);
        return (
          <Link
            key={state}
            to={to(state)}
            className={`flow-stage tone-${jobs ? look.tone : "none"}`}
            aria-current={state === chosen ? "true" : undefined}
          >
            <span className="flow-label">{state}</span>
            <strong className="num">{count(jobs)}</strong>
            <span className="faint num">{jobs ? size(bytesIn(tally, state)) : "–"}</span>
          </Link>
        );
      })}
    </nav>
  );
}
