import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/gaps", title: "Gaps", load: () => import("./Gaps"), nav: { label: "Gaps", icon: "columns", order: 68 } },
];
