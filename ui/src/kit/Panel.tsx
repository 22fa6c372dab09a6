import type { ReactNode } from "react";
import { Link } from "../router/Link";
import { CopyButton } from "./CopyButton";
import { useLocation, withQuery } from "../router/router";

/** A part of a page with a heading. */
export function Panel({
  title,
  aside,
  children,
  className = "",
}: {
  title: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
  className?: string;
}) {
  return (
    <section className={`panel ${className}`}>
      <header>
        <h2>{title}</h2>
        {aside && <div className="aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

/** The head of a page: its subject, an id to copy, and the actions. */
export function PageHead({
  kind,
  title,
  copies,
  children,
  actions,
}: {
  kind?: ReactNode;
  title: ReactNode;
  copies?: string;
  children?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <header className="page-head">
      <div>
        {kind && <div className="kind">{kind}</div>}
        <div className="page-title">
          <h1>{title}</h1>
          {copies && <CopyButton text={copies} />}
        </div>
        {children && <div className="under">{children}</div>}
      </div>
      {actions && <div className="actions">{actions}</div>}
    </header>
  );
}

export interface Tab {
  readonly id: string;
  readonly label: string;
  readonly count?: number | undefined;
}

/** The tabs of a page, each with an address; the first has the plain one. */
export function Tabs({ tabs, name = "tab" }: { tabs: readonly Tab[]; name?: string }) {
  const { path, query } = useLocation();
  const current = query.get(name) ?? tabs[0]?.id;
  return (
    <nav className="tabs" aria-label="views">
      {tabs.map((tab, at) => (
        <Link
          key={tab.id}
          to={path + withQuery(new URLSearchParams(), { [name]: at === 0 ? null : tab.id })}
          aria-current={tab.id === current ? "page" : undefined}
        >
          {tab.label}
          {tab.count !== undefined && (
            <span className="count">{tab.count.toLocaleString("en")}</span>
          )}
        </Link>
      ))}
    </nav>
  );
}

/** A list of names and values. */
export function Facts({ of: facts }: { of: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? <span className="faint">–</span>}</dd>
        </div>
      ))}
    </dl>
  );
}

/** JSON as the server sent it. */
export function Json({ value }: { value: unknown }) {
  return (
    <pre className="json" tabIndex={0}>
      {JSON.stringify(value, null, 2)}
    </pre>
  );
}
