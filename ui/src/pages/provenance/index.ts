import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  {
    path: "/provenance",
    title: "Provenance",
    needs: "everywhere",
    load: () => import("./Provenance"),
    nav: { label: "Provenance", icon: "file", order: 35 },
  },
];
