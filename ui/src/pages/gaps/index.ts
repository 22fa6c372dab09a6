import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/gaps",
    title: "Gaps",
    load: () => import("./Gaps"),
    nav: { label: "Gaps", icon: "columns", order: 68 },
  },
];
