import type { Page } from "../../app/pages";
import { firstReads } from "./graphQuery";

export const pages: readonly Page[] = [
  {
    path: "/lineage",
    title: "Lineage",
    needs: "everywhere",
    load: () => import("./Lineage"),
    reads: (_, query) => firstReads(query),
    fills: true,
    nav: { label: "Lineage", icon: "graph", order: 20 },
  },
];
