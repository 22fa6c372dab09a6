import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/jobs",
    title: "Jobs",
    load: () => import("./Jobs"),
    nav: { label: "Jobs and arcs", icon: "gear", order: 40 },
  },
  { path: "/jobs/:namespace/:name", title: "Job", load: () => import("./Job") },
  {
    path: "/jobs/:namespace/:name/lots/:lot",
    title: "Work on a lot",
    load: () => import("./Work"),
  },
];
