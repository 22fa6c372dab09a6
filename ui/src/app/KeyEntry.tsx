import { type FormEvent, useEffect, useState } from "react";
import { key, onKeyWanted, setKey } from "../api/client";
import { again } from "../api/live";
import { renew } from "../api/store";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";

/** Asks for a key when the server wants one; it is kept for this tab, and sent nowhere else. */
export function KeyEntry() {
  const [isWanted, setWanted] = useState(false);
  const [value, setValue] = useState("");
  useEffect(() => onKeyWanted(() => setWanted(true)), []);
  if (!isWanted) return null;
  function enter(event: FormEvent): void {
    event.preventDefault();
    setKey(value.trim());
    setValue("");
    setWanted(false);
    renew();
    again();
  }
  return (
    <Dialog title={key() ? "The key was refused" : "A key is needed"} onClose={() => setWanted(false)}>
      <form className="stack" onSubmit={enter}>
        <p>
          This server asks who is calling. Enter a key; an administrator makes one with <code>penstock keys create</code>. It is kept in this tab only.
        </p>
        <label>
          Key
          <input className="field mono" type="password" value={value} onChange={(event) => setValue(event.target.value)} autoFocus autoComplete="off" />
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
