/** Every page: the `index.ts` of each folder of `pages/` lists its pages. */
import { type ComponentType, useEffect, useSyncExternalStore } from "react";
import type { IconName } from "../kit/Icon";
import type { Needs, Rights } from "../kit/rights";
import { onChange } from "../api/live";
import { prefetch } from "../api/queries";
import { match } from "../router/router";

export type PageProps = Readonly<Record<string, string>>;
type View = ComponentType<Record<string, string>>;
type Module = { default: View };

export interface Page {
  /** Its path, such as `/datasets/:namespace/:name`; the variables are the props of the component. */
  readonly path: string;
  readonly title: string;
  readonly load: () => Promise<unknown>;
  /** Its link in the navigation, if it has one. */
  readonly nav?: { readonly label: string; readonly icon: IconName; readonly order: number };
  /** The rights that it takes; a key without them does not see the link. */
  readonly needs?: Needs;
  /** The addresses to read at once when the page is opened, while its code loads. */
  readonly reads?: (props: PageProps, query: URLSearchParams) => readonly string[];
  /** Whether it fills the window instead of scrolling. */
  readonly fills?: boolean;
}

const modules = import.meta.glob<{ pages: readonly Page[] }>("../pages/*/index.ts", {
  eager: true,
});

export const PAGES: readonly Page[] = Object.values(modules).flatMap((module) => module.pages);

const NAV: readonly Page[] = PAGES.filter((page) => page.nav).sort(
  (a, b) => (a.nav?.order ?? 0) - (b.nav?.order ?? 0),
);

/** The links for a key. All are shown until its rights are known. */
export const navFor = ({ isKnown, allows }: Rights): readonly Page[] =>
  NAV.filter((page) => !isKnown || !page.needs || allows(page.needs));

/** Find the page at a path, and the variables of the path. */
export function pageAt(path: string): { page: Page; props: Record<string, string> } | null {
  for (const page of PAGES) {
    const props = match(page.path, path);
    if (props) return { page, props };
  }
  return null;
}

const views = new Map<Page, View | Error>();
const loading = new Set<Page>();
const listeners = new Set<() => void>();

async function load(page: Page): Promise<void> {
  if (loading.has(page)) return;
  loading.add(page);
  try {
    if (views.has(page)) await reloadStyles();
    views.set(page, ((await page.load()) as Module).default);
  } catch (error) {
    views.set(page, error instanceof Error ? error : new Error(String(error)));
  }
  loading.delete(page);
  for (const listener of listeners) listener();
}

const failedStyles = new Set<HTMLLinkElement>();
// An error of a link does not bubble, so listen in the capture phase.
window.addEventListener(
  "error",
  ({ target }) => {
    if (target instanceof HTMLLinkElement && target.rel === "stylesheet") failedStyles.add(target);
  },
  true,
);

/** Load the failed stylesheets again: an import requests the styles of a page only once. */
async function reloadStyles(): Promise<void> {
  await Promise.all(
    [...failedStyles].map(
      (link) =>
        new Promise<void>((resolve, reject) => {
          const again = link.cloneNode() as HTMLLinkElement;
          failedStyles.delete(link);
          again.addEventListener("load", () => resolve());
          again.addEventListener("error", () => reject(new Error(`${link.href} did not load`)));
          link.replaceWith(again);
        }),
    ),
  );
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * The component of a page, null while its code loads, or the error if that failed; each change
 * on the server then loads it again. Not Suspense: after a fallback it delays the page by 300 ms.
 */
export function useView(page: Page | undefined): View | Error | null {
  // The code may arrive at any moment, also between the first render and its effects.
  const view = useSyncExternalStore(subscribe, () => page && views.get(page));
  useEffect(() => {
    if (!page || (view && !(view instanceof Error))) return;
    if (!view) void load(page);
    return onChange(() => void load(page));
  }, [page, view]);
  return view ?? null;
}

/** Load the code of a page and its first data at the same time. */
export function prefetchPage({ pathname, search }: Location): void {
  prefetch("/api/v1/key");
  const opened = pageAt(pathname);
  if (!opened) return;
  void load(opened.page);
  for (const url of opened.page.reads?.(opened.props, new URLSearchParams(search)) ?? [])
    prefetch(url);
}

/** Whether a page is the current one, or above it. */
export function isCurrent(page: Page, path: string): boolean {
  return page.path === "/" ? path === "/" : path === page.path || path.startsWith(`${page.path}/`);
}
