/** Every page: each folder of `pages/` has an `index.ts` that says what it serves. */
import { type ComponentType, useEffect, useSyncExternalStore } from "react";
import type { IconName } from "../kit/Icon";
import type { Needs, Rights } from "../kit/rights";
import { onNews } from "../api/live";
import { ahead } from "../api/store";
import { match } from "../router/router";

export type PageProps = Readonly<Record<string, string>>;
type View = ComponentType<Record<string, string>>;
type Module = { default: View };

export interface PageEntry {
  /** Where it is, such as `/datasets/:namespace/:name`; its variables are the component's props. */
  readonly path: string;
  readonly title: string;
  readonly load: () => Promise<unknown>;
  /** Its place in the navigation, if it has one. */
  readonly nav?: { readonly label: string; readonly icon: IconName; readonly order: number };
  /** Which key may read it; to others it is not named. */
  readonly needs?: Needs;
  /** What it reads first: asked for at once when the page is opened here, while its code still comes. */
  readonly reads?: (props: PageProps, query: URLSearchParams) => readonly string[];
  /** Whether it fills the window, as the graph does, instead of scrolling. */
  readonly fills?: boolean;
}

export type Page = PageEntry;

const found = import.meta.glob<{ pages: readonly PageEntry[] }>("../pages/*/index.ts", { eager: true });

export const PAGES: readonly Page[] = Object.values(found).flatMap((module) => module.pages);

const NAV: readonly Page[] = PAGES.filter((page) => page.nav).sort((a, b) => (a.nav?.order ?? 0) - (b.nav?.order ?? 0));

/** The pages that somebody may go to; the few who may not go to all see the others vanish. */
export const navFor = ({ isKnown, allows }: Rights): readonly Page[] => NAV.filter((page) => !isKnown || !page.needs || allows(page.needs));

/** The page at a path, with the variables of the path. */
export function pageAt(path: string): { page: Page; props: Record<string, string> } | null {
  for (const page of PAGES) {
    const props = match(page.path, path);
    if (props) return { page, props };
  }
  return null;
}

const views = new Map<Page, View | Error>();
const onTheirWay = new Set<Page>();
const watchers = new Set<() => void>();

async function load(page: Page): Promise<void> {
  if (onTheirWay.has(page)) return;
  onTheirWay.add(page);
  try {
    if (views.has(page)) await missingStyles();
    views.set(page, ((await page.load()) as Module).default);
  } catch (error) {
    views.set(page, error instanceof Error ? error : new Error(String(error)));
  }
  onTheirWay.delete(page);
  for (const watcher of watchers) watcher();
}

const failedStyles = new Set<HTMLLinkElement>();
// It does not bubble, but it can be seen on its way down.
window.addEventListener(
  "error",
  ({ target }) => {
    if (target instanceof HTMLLinkElement && target.rel === "stylesheet") failedStyles.add(target);
  },
  true,
);

/** Asks again for the styles that did not come; what imports a page's code asks for them only once. */
async function missingStyles(): Promise<void> {
  await Promise.all(
    [...failedStyles].map(
      (link) =>
        new Promise<void>((resolve, reject) => {
          const again = link.cloneNode() as HTMLLinkElement;
          failedStyles.delete(link);
          again.addEventListener("load", () => resolve());
          again.addEventListener("error", () => reject(new Error(`${link.href} did not come`)));
          link.replaceWith(again);
        }),
    ),
  );
}

function watch(watcher: () => void): () => void {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

/**
 * What draws a page, null while its code comes, or an error if it did not; then it is asked for
 * again whenever there may be news. It is not left to Suspense, which shows a page 300 ms later
 * than it could once it has shown that there is something to wait for.
 */
export function useView(page: Page | undefined): View | Error | null {
  // The code may come at any moment, also between the first drawing and what is done after it.
  const found = useSyncExternalStore(watch, () => page && views.get(page));
  useEffect(() => {
    if (!page || (found && !(found instanceof Error))) return;
    if (!found) void load(page);
    return onNews(() => void load(page));
  }, [page, found]);
  return found ?? null;
}

/** Has the code of a page and what it reads come together, instead of one after the other. */
export function begin({ pathname, search }: Location): void {
  ahead("/api/v1/key");
  const opened = pageAt(pathname);
  if (!opened) return;
  void load(opened.page);
  for (const url of opened.page.reads?.(opened.props, new URLSearchParams(search)) ?? []) ahead(url);
}

/** Whether a place of the navigation is where we are, or above it. */
export function isAt(page: Page, path: string): boolean {
  return page.path === "/" ? path === "/" : path === page.path || path.startsWith(`${page.path}/`);
}
