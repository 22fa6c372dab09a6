import type { Page } from "../../app/pages";

export const pages: readonly Page[] = [
  { path: "/runs/:id", title: "Run", load: () => import("./Run") },
];
