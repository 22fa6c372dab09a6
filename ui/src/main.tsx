import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { QueryClientProvider } from "@tanstack/react-query";
import { connect } from "./api/live";
import { queryClient } from "./api/queries";
import { App } from "./app/App";
import { prefetchPage } from "./app/pages";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/kit.css";
import "./styles/print.css";

prefetchPage(window.location);
connect();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queryClient}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  );
}
