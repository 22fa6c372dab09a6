import { useEffect, useMemo, useRef } from "react";
import { SILENT } from "../api/client";
import { useGet } from "../api/hooks";
import { Button } from "../kit/Button";
import { Confirm } from "../kit/Confirm";
import { Empty, Trouble, Waiting } from "../kit/Shown";
import { RightsProvider, rightsOf } from "../kit/rights";
import { useKeptScroll } from "../kit/scroll";
import { Toasts } from "../kit/Toasts";
import { Link } from "../router/Link";
import { usePlace } from "../router/router";
import { ErrorBoundary } from "./ErrorBoundary";
import { KeyEntry } from "./KeyEntry";
import { Nav } from "./Nav";
import { pageAt, type Page, type PageProps, useView } from "./pages";
import { Palette } from "./Palette";

/** The whole page: navigation, the view that the address names, and what lies over it. */
export function App() {
  const { path } = usePlace();
  const { value: caller, problem } = useGet("/api/v1/key", {}, { live: false });
  const main = useRef<HTMLElement>(null);
  const keep = useKeptScroll("main", main);
  const rights = useMemo(() => rightsOf(caller, problem !== undefined), [caller, problem]);
  const found = pageAt(path);
  const subject = Object.values(found?.props ?? {}).at(-1);
  const title = [subject, found?.page.title ?? "Nothing here", "Penstock"].filter(Boolean).join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <RightsProvider value={rights}>
      <div className="layout">
        <a className="skip" href="#main">
          Skip to the content
        </a>
        <Nav path={path} />
        <main id="main" ref={main} onScroll={keep} tabIndex={-1} className={found?.page.fills ? "fills" : ""}>
          <ErrorBoundary key={path}>
            {found ? <Opened page={found.page} props={found.props} /> : <Nowhere path={path} />}
          </ErrorBoundary>
        </main>
        <Palette />
        <Confirm />
        <KeyEntry />
        <Toasts />
      </div>
    </RightsProvider>
  );
}

function Opened({ page, props }: { page: Page; props: PageProps }) {
  const View = useView(page);
  if (View instanceof Error) {
    return (
      <>
        <Trouble problem={{ status: 0, message: SILENT }} />
        <Button onClick={() => window.location.reload()}>Load the page again</Button>
      </>
    );
  }
  return View ? <View {...props} /> : <Waiting />;
}

function Nowhere({ path }: { path: string }) {
  return (
    <Empty icon="search" title={`There is no page at ${path}`}>
      Press <kbd>/</kbd> to search, or go to the <Link to="/">overview</Link>.
    </Empty>
  );
}
