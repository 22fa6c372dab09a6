import { type FormEvent, useEffect, useState } from "react";
import { key, onKeyNeeded, setKey } from "../api/client";
import { reconnect } from "../api/live";
import { resetAll } from "../api/queries";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";

/** The dialog for a key, when the server needs one. The key stays in this tab. */
export function KeyEntry() {
  const [isNeeded, setNeeded] = useState(false);
  const [value, setValue] = useState("");
  useEffect(() => onKeyNeeded(() => setNeeded(true)), []);
  if (!isNeeded) return null;
  function enter(event: FormEvent): void {
    event.preventDefault();
    setKey(value.trim());
    setValue("");
    setNeeded(false);
    resetAll();
    reconnect();
  }
  return (
    <Dialog
      title={key() ? "The key was refused" : "A key is needed"}
      onClose={() => setNeeded(false)}
    >
      <form className="stack" onSubmit={enter}>
        <p>
          This server needs a key. An administrator creates one with{" "}
          <code>penstock keys create</code>. The key is kept in this tab only.
        </p>
        <label>
          Key
          <input
            className="field mono"
            type="password"
            value={value}
            onChange={(event) => setValue(event.target.value)}
            autoFocus
            autoComplete="off"
          />
        </label>
        <footer>
          <Button type="submit" kind="primary" disabled={!value.trim()}>
            Use this key
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
