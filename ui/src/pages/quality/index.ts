import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/quality",
    title: "Checks and stale lots",
    load: () => import("./Quality"),
    nav: { label: "Quality", icon: "shield", order: 65 },
  },
];
