import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/provenance", title: "Provenance", needs: "everywhere", load: () => import("./Provenance"), nav: { label: "Provenance", icon: "file", order: 35 } },
];
