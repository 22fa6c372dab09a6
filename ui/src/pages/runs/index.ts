import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [{ path: "/runs/:id", title: "Run", load: () => import("./Run") }];
