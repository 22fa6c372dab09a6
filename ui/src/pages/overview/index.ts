import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/", title: "Overview", load: () => import("./Overview"), nav: { label: "Overview", icon: "home", order: 10 } },
];
