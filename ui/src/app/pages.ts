/** Every page: each folder of `pages/` has an `index.ts` that says what it serves. */
import { type ComponentType, lazy, type LazyExoticComponent } from "react";
import type { IconName } from "../kit/Icon";
import { match } from "../router/router";

export type PageProps = Readonly<Record<string, string>>;
type Module = { default: ComponentType<Record<string, string>> };

export interface PageEntry {
  /** Where it is, such as `/datasets/:namespace/:name`; its variables are the component's props. */
  readonly path: string;
  readonly title: string;
  readonly load: () => Promise<unknown>;
  /** Its place in the navigation, if it has one. */
  readonly nav?: { readonly label: string; readonly icon: IconName; readonly order: number };
  /** Whether it fills the window, as the graph does, instead of scrolling. */
  readonly fills?: boolean;
}

export interface Page extends PageEntry {
  readonly View: LazyExoticComponent<ComponentType<Record<string, string>>>;
}

const found = import.meta.glob<{ pages: readonly PageEntry[] }>("../pages/*/index.ts", { eager: true });

export const PAGES: readonly Page[] = Object.values(found)
  .flatMap((module) => module.pages)
  .map((entry) => ({ ...entry, View: lazy(() => entry.load() as Promise<Module>) }));

export const NAV: readonly Page[] = PAGES.filter((page) => page.nav).sort((a, b) => (a.nav?.order ?? 0) - (b.nav?.order ?? 0));

/** The page at a path, with the variables of the path. */
export function pageAt(path: string): { page: Page; props: Record<string, string> } | null {
  for (const page of PAGES) {
    const props = match(page.path, path);
    if (props) return { page, props };
  }
  return null;
}

/** Whether a place of the navigation is where we are, or above it. */
export function isAt(page: Page, path: string): boolean {
  return page.path === "/" ? path === "/" : path === page.path || path.startsWith(`${page.path}/`);
}
