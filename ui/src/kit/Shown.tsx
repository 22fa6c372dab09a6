/** What is shown while something is read, when it cannot be, and when there is nothing. */
import type { ReactNode } from "react";
import type { Problem } from "../api/client";
import type { Loaded } from "../api/store";
import { Icon, type IconName } from "./Icon";

/** Something read from the server: itself, or what happened instead. That there is no answer at all is said once for the whole page. */
export function Shown<T>({ of: loaded, children }: { of: Loaded<T>; children: (value: T) => ReactNode }) {
  if (loaded.value !== undefined) {
    return (
      <>
        {loaded.problem && loaded.problem.status !== 0 && <Trouble problem={loaded.problem} />}
        {children(loaded.value)}
      </>
    );
  }
  if (loaded.problem) return <Trouble problem={loaded.problem} />;
  return <Waiting />;
}

/** Room for something that is being read. */
export function Waiting() {
  return (
    <div className="waiting" role="status" aria-label="reading">
      <span />
      <span />
      <span />
    </div>
  );
}

/** What went wrong, in the server's words. */
export function Trouble({ problem }: { problem: Problem }) {
  return (
    <div className="trouble tone-bad" role="alert">
      <Icon name="alert" />
      <div>
        <strong>{problem.status === 404 ? "There is no such thing" : problem.status === 403 ? "Your key may not see this" : "This could not be read"}</strong>
        <p>{problem.message}</p>
      </div>
    </div>
  );
}

/** Nothing is here yet: says what to do first. */
export function Empty({ icon = "empty", title, children }: { icon?: IconName; title: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <Icon name={icon} size={22} />
      <h3>{title}</h3>
      {children && <div className="faint">{children}</div>}
    </div>
  );
}
