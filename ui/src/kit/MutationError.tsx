import type { Problem } from "../api/client";
import { Icon } from "./Icon";

/** The page repeats a read that was not answered, but never a change. */
export const problemText = ({ status, message }: Problem): string =>
  status === 0
    ? "The server did not answer. When it answers again, check the current state before you retry."
    : message;

/** Why a change was not made, beside the button that sent it. */
export function MutationError({ problem }: { problem: Problem | null }) {
  return (
    problem && (
      <div className="trouble tone-bad" role="alert">
        <Icon name="alert" />
        <div>
          <strong>
            {problem.status === 0 ? "It is unknown whether this was done" : "This was not done"}
          </strong>
          <p>{problemText(problem)}</p>
        </div>
      </div>
    )
  );
}
