import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { follow } from "./api/live";
import { App } from "./app/App";
import { begin } from "./app/pages";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/kit.css";
import "./styles/print.css";

begin(window.location);
follow();
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
