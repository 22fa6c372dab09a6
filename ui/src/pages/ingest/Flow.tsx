/** The stages side by side, with how many jobs and bytes are in each. */
import { lookOf } from "../../kit/status";
import { count, size } from "../../kit/words";
import { Link } from "../../router/Link";
import { bytesIn, JOB_STATES, jobsIn, type Tally } from "./stages";

interface Props {
  tally: Tally;
  /** Where a state leads. */
  to: (state: string) => string;
  chosen?: string | null;
}

export function Flow({ tally, to, chosen }: Props) {
  return (
    <nav className="flow" aria-label="jobs by stage">
      {JOB_STATES.map((state) => {
        const look = lookOf(state);
        const jobs = jobsIn(tally, state);
        return (
          <Link key={state} to={to(state)} className={`flow-stage tone-${jobs ? look.tone : "none"}`} aria-current={state === chosen ? "true" : undefined}>
            <span className="flow-label">{state}</span>
            <strong className="num">{count(jobs)}</strong>
            <span className="faint num">{jobs ? size(bytesIn(tally, state)) : "–"}</span>
          </Link>
        );
      })}
    </nav>
  );
}
