import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/ingest",
    title: "Ingest",
    load: () => import("./Ingest"),
    nav: { label: "Ingest", icon: "inbox", order: 50 },
  },
  { path: "/ingest/batches/:id", title: "Batch", load: () => import("./Batch") },
  { path: "/ingest/jobs/:id", title: "Ingest job", load: () => import("./IngestJob") },
  { path: "/ingest/collections/:name", title: "Collection", load: () => import("./Collection") },
];
