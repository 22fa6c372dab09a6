import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/lineage", title: "Lineage", load: () => import("./Lineage"), fills: true, nav: { label: "Lineage", icon: "graph", order: 20 } },
];
