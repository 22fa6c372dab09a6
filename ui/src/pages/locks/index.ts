import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/locks",
    title: "Locks",
    load: () => import("./Locks"),
    nav: { label: "Locks", icon: "lock", order: 60 },
  },
];
