import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/locks", title: "Locks", load: () => import("./Locks"), nav: { label: "Locks", icon: "lock", order: 60 } },
];
