import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/quality", title: "Checks and stale lots", load: () => import("./Quality"), nav: { label: "Quality", icon: "shield", order: 65 } },
];
