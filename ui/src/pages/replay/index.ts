import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/replay", title: "Replays and backfills", load: () => import("./Replays"), nav: { label: "Replay", icon: "replay", order: 70 } },
  { path: "/replay/new", title: "A new replay", load: () => import("./NewReplay") },
  { path: "/replay/:id", title: "Replay", load: () => import("./Replay") },
  { path: "/backfills/:id", title: "Backfill", load: () => import("./Backfill") },
];
