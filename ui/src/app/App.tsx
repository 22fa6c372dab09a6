import { useEffect, useMemo, useRef } from "react";
import { NO_ANSWER } from "../api/client";
import { useGet } from "../api/queries";
import { Button } from "../kit/Button";
import { Confirm } from "../kit/Confirm";
import { EmptyState, ProblemNote, Loading } from "../kit/Async";
import { RightsProvider, rightsOf } from "../kit/rights";
import { useScrollRestoration } from "../kit/useScrollRestoration";
import { Toasts } from "../kit/Toasts";
import { Link } from "../router/Link";
import { useLocation } from "../router/router";
import { ErrorBoundary } from "./ErrorBoundary";
import { KeyEntry } from "./KeyEntry";
import { Nav } from "./Nav";
import { pageAt, type Page, type PageProps, useView } from "./pages";
import { Palette } from "./Palette";

/** The whole page: the navigation, the view of the address, and the dialogs above it. */
export function App() {
  const { path } = useLocation();
  const { data: caller, error } = useGet("/api/v1/key", {}, { live: false });
  const main = useRef<HTMLElement>(null);
  const saveMainScroll = useScrollRestoration("main", main);
  const rights = useMemo(() => rightsOf(caller, error !== null), [caller, error]);
  const opened = pageAt(path);
  const subject = Object.values(opened?.props ?? {}).at(-1);
  const title = [subject, opened?.page.title ?? "Not found", "Penstock"]
    .filter(Boolean)
    .join(" · ");
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
        <main
          id="main"
          ref={main}
          onScroll={saveMainScroll}
          tabIndex={-1}
          className={opened?.page.fills ? "fills" : ""}
        >
          <ErrorBoundary key={path}>
            {opened ? <PageView page={opened.page} props={opened.props} /> : <NoPage path={path} />}
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

function PageView({ page, props }: { page: Page; props: PageProps }) {
  const View = useView(page);
  if (View instanceof Error) {
    return (
      <>
        <ProblemNote problem={{ status: 0, message: NO_ANSWER }} />
        <Button onClick={() => window.location.reload()}>Reload the page</Button>
      </>
    );
  }
  return View ? <View {...props} /> : <Loading />;
}

function NoPage({ path }: { path: string }) {
  return (
    <EmptyState icon="search" title={`There is no page at ${path}`}>
      Press <kbd>/</kbd> to search, or go to the <Link to="/">overview</Link>.
    </EmptyState>
  );
}
