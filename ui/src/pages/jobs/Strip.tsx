import { lookOf } from "../../kit/status";
import { span } from "../../kit/words";
import type { Schemas } from "../../api/client";

/** The last runs of a job as a row of bars: colour and height say how they ended and how long they took. */
export function Strip({ runs }: { runs: readonly Schemas["Run"][] }) {
  const shown = [...runs].slice(0, 12).reverse();
  const longest = Math.max(1, ...shown.map((run) => run.durationMs ?? 0));
  const said = shown.map((run) => run.state.toLowerCase()).join(", ");
  return (
    <span className="strip" role="img" aria-label={said ? `last runs: ${said}` : "no run yet"}>
      {shown.map((run) => {
        const look = lookOf(run.state);
        const part = 0.35 + 0.65 * ((run.durationMs ?? longest) / longest);
        return <i key={run.id} className={`tone-${look.tone} ${look.tone}`} style={{ height: `${part * 18}px` }} title={`${look.word}${run.durationMs === null ? "" : `, ${span(run.durationMs / 1000)}`}`} />;
      })}
    </span>
  );
}
