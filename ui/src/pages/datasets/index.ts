import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/datasets", title: "Datasets", load: () => import("./Datasets"), nav: { label: "Datasets", icon: "table", order: 30 } },
  { path: "/datasets/:namespace/:name", title: "Dataset", load: () => import("./Dataset") },
  { path: "/datasets/:namespace/:name/lots/:lot", title: "Lot", load: () => import("./Lot") },
];
