import { useEffect, useRef, useState } from "react";
import { useAway } from "../api/away";
import { key, setKey } from "../api/client";
import { again, useLiveness } from "../api/live";
import { renew } from "../api/store";
import { Button } from "../kit/Button";
import { Icon } from "../kit/Icon";
import { useRights } from "../kit/rights";
import { Link } from "../router/Link";
import { openPalette } from "./Palette";
import { isAt, navFor } from "./pages";
import { isDark, onTheme, toggleTheme } from "./theme";

const LIVE = { live: "Live", connecting: "Connecting", polling: "Every 5 s", away: "No answer" } as const;
const LIVE_SAYS = {
  live: "What is shown follows the server.",
  connecting: "The connection is being made.",
  polling: "The stream cannot be had: the server is asked every 5 seconds.",
  away: "The server does not answer. It is asked again and again.",
} as const;

/** The way to every page, and what holds for all of them. */
export function Nav({ path }: { path: string }) {
  const followed = useLiveness();
  const liveness = useAway() ? "away" : followed;
  const rights = useRights();
  const [dark, setDark] = useState(isDark);
  useEffect(() => onTheme(() => setDark(isDark())), []);
  // On a phone the pages are one line that is longer than the screen.
  const pages = useRef<HTMLElement>(null);
  useEffect(() => {
    // Some browsers give back a promise, which is no way to end an effect.
    pages.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
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
          <Link key={page.path} to={page.path} aria-current={isAt(page, path) ? "page" : undefined}>
            {page.nav && <Icon name={page.nav.icon} />}
            <span>{page.nav?.label}</span>
          </Link>
        ))}
      </nav>
      {rights.says && <p className="rights faint">{rights.says}</p>}
      <footer>
        <span className={`liveness ${liveness}`} title={LIVE_SAYS[liveness]} role="status">
          <i />
          {LIVE[liveness]}
        </span>
        {key() && (
          <Button
            kind="quiet"
            icon="key"
            title="Forget the key of this tab"
            aria-label="forget the key"
            onClick={() => {
              setKey(null);
              renew();
              again();
            }}
          />
        )}
        <a className="button quiet" href="/docs" title="The API, to read">
          API
        </a>
        <Button kind="quiet" icon={dark ? "sun" : "moon"} aria-label={dark ? "light theme" : "dark theme"} onClick={toggleTheme} />
      </footer>
    </header>
  );
}
