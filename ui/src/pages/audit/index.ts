import type { PageEntry } from "../../app/pages";

export const pages: readonly PageEntry[] = [
  { path: "/audit", title: "Audit log", needs: "admin everywhere", load: () => import("./Audit"), nav: { label: "Audit log", icon: "list", order: 80 } },
];
