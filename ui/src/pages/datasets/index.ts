import { urlOf } from "../../api/client";
import type { Page } from "../../app/pages";

const DATASET = "/api/v1/namespaces/{namespace}/datasets/{dataset}";

export const pages: readonly Page[] = [
  {
    path: "/datasets",
    title: "Datasets",
    load: () => import("./Datasets"),
    nav: { label: "Datasets", icon: "table", order: 30 },
  },
  {
    path: "/datasets/:namespace/:name",
    title: "Dataset",
    load: () => import("./Dataset"),
    reads: ({ namespace = "", name = "" }) =>
      [DATASET, `${DATASET}/standing`].map((path) =>
        urlOf(path, { path: { namespace, dataset: name } }),
      ),
  },
  { path: "/datasets/:namespace/:name/lots/:lot", title: "Lot", load: () => import("./Lot") },
];
