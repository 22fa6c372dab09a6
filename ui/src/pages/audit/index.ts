import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/audit",
    title: "Audit log",
    needs: "admin everywhere",
    load: () => import("./Audit"),
    nav: { label: "Audit log", icon: "list", order: 80 },
  },
];
