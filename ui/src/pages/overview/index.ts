import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/",
    title: "Overview",
    load: () => import("./Overview"),
    reads: () => ["/api/v1/standing", "/api/v1/ingest/queue"],
    nav: { label: "Overview", icon: "home", order: 10 },
  },
];
