import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/replay",
    title: "Replays and backfills",
    load: () => import("./Replays"),
    nav: { label: "Replay", icon: "replay", order: 70 },
  },
  { path: "/replay/new", title: "New replay", load: () => import("./NewReplay") },
  { path: "/replay/:id", title: "Replay", load: () => import("./Replay") },
  { path: "/backfills/:id", title: "Backfill", load: () => import("./Backfill") },
];
