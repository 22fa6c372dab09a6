import type { Problem } from "../api/client";
import { Icon } from "./Icon";

/** Nobody makes such a call again by itself, as reading is. */
export const saidOf = ({ status, message }: Problem): string => (status === 0 ? "The server did not answer. Once it does, look how things stand before you try again." : message);

/** Why something was not done, beside the button that was to do it. */
export function Refused({ problem }: { problem: Problem | null }) {
  return (
    problem && (
      <div className="trouble tone-bad" role="alert">
        <Icon name="alert" />
        <div>
          <strong>{problem.status === 0 ? "It is not known whether this was done" : "This was not done"}</strong>
          <p>{saidOf(problem)}</p>
        </div>
      </div>
    )
  );
}
