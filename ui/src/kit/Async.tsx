/** The data of a query, or the state of the query in its place. */
import type { ReactNode } from "react";
import type { Problem } from "../api/client";
import type { Query } from "../api/queries";
import { Icon, type IconName } from "./Icon";

/** The layout reports that the server does not answer, so data stays here without a note. */
export function Async<T>({
  of: query,
  children,
}: {
  of: Pick<Query<T>, "data" | "error">;
  children: (value: T) => ReactNode;
}) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && query.error.status !== 0 && <ProblemNote problem={query.error} />}
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <ProblemNote problem={query.error} />;
  return <Loading />;
}

/** A placeholder while data is read. */
export function Loading() {
  return (
    <div className="waiting" role="status" aria-label="loading">
      <span />
      <span />
      <span />
    </div>
  );
}

/** The message of a failed read. */
export function ProblemNote({ problem }: { problem: Problem }) {
  return (
    <div className="trouble tone-bad" role="alert">
      <Icon name="alert" />
      <div>
        <strong>
          {problem.status === 404
            ? "Not found"
            : problem.status === 403
              ? "Your key may not read this"
              : "The read failed"}
        </strong>
        <p>{problem.message}</p>
      </div>
    </div>
  );
}

/** A note in place of an empty list, with the next step. */
export function EmptyState({
  icon = "empty",
  title,
  children,
}: {
  icon?: IconName;
  title: string;
  children?: ReactNode;
}) {
  return (
    <div className="empty">
      <Icon name={icon} size={22} />
      <h3>{title}</h3>
      {children && <div className="faint">{children}</div>}
    </div>
  );
}
