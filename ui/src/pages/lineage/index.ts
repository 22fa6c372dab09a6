import type { PageEntry } from "../../app/pages";
import { firstReads } from "./asked";

export const pages: readonly PageEntry[] = [
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
