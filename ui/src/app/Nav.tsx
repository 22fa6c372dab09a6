import { useEffect, useRef, useState } from "react";
import { isUnreachable } from "../api/reachability";
import { key, setKey } from "../api/client";
import { liveness, reconnect } from "../api/live";
import { resetAll } from "../api/queries";
import { Button } from "../kit/Button";
import { Icon } from "../kit/Icon";
import { useRights } from "../kit/rights";
import { useValue } from "../lib/store";
import { Link } from "../router/Link";
import { openPalette } from "./Palette";
import { isCurrent, navFor } from "./pages";
import { isDark, onTheme, toggleTheme } from "./theme";

const LIVE = {
  live: "Live",
  connecting: "Connecting",
  polling: "Every 5 s",
  unreachable: "No answer",
} as const;
const LIVE_TITLES = {
  live: "The page follows the server.",
  connecting: "The page connects to the server.",
  polling: "The event stream is not available: the page polls every 5 seconds.",
  unreachable: "The server does not answer. The page retries.",
} as const;

/** The links to all pages, the connection, the key and the theme. */
export function Nav({ path }: { path: string }) {
  const followed = useValue(liveness);
  const connection = useValue(isUnreachable) ? "unreachable" : followed;
  const rights = useRights();
  const [dark, setDark] = useState(isDark);
  useEffect(() => onTheme(() => setDark(isDark())), []);
  // On a phone the links are one line that is wider than the screen.
  const pages = useRef<HTMLElement>(null);
  useEffect(() => {
    // In braces: some browsers return a promise here, which an effect must not return.
    pages.current
      ?.querySelector("[aria-current]")
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [path, rights]);
  return (
    <header className="nav">
      <Link to="/" className="brand" aria-label="Penstock, overview">
        <img src="/icon.svg" alt="" width="22" height="22" />
        <span>Penstock</span>
      </Link>
      <button type="button" className="search" onClick={openPalette} aria-label="search or go to">
        <Icon name="search" size={14} />
        <span>Search</span>
        <kbd>/</kbd>
      </button>
      <nav aria-label="pages" ref={pages}>
        {navFor(rights).map((page) => (
          <Link
            key={page.path}
            to={page.path}
            aria-current={isCurrent(page, path) ? "page" : undefined}
          >
            {page.nav && <Icon name={page.nav.icon} />}
            <span>{page.nav?.label}</span>
          </Link>
        ))}
      </nav>
      {rights.note && <p className="rights faint">{rights.note}</p>}
      <footer>
        <span className={`liveness ${connection}`} title={LIVE_TITLES[connection]} role="status">
          <i />
          {LIVE[connection]}
        </span>
        {key() && (
          <Button
            kind="quiet"
            icon="key"
            title="Remove the key from this tab"
            aria-label="remove the key"
            onClick={() => {
              setKey(null);
              resetAll();
              reconnect();
            }}
          />
        )}
        <a className="button quiet" href="/docs" title="The API reference">
          API
        </a>
        <Button
          kind="quiet"
          icon={dark ? "sun" : "moon"}
          aria-label={dark ? "light theme" : "dark theme"}
          onClick={toggleTheme}
        />
      </footer>
    </header>
  );
}
