/** Short messages about what was just done; errors stay until they are closed. */
import { useSyncExternalStore } from "react";
import { useAway } from "../api/away";
import { SILENT } from "../api/client";
import { Button } from "./Button";
import { Icon } from "./Icon";

interface Toast {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: string;
}

const SHOWN_MS = 6_000;
let toasts: readonly Toast[] = [];
let last = 0;
const watchers = new Set<() => void>();

function put(next: readonly Toast[]): void {
  toasts = next;
  for (const watcher of watchers) watcher();
}

export function toast(text: string, tone: Toast["tone"] = "good"): void {
  last += 1;
  const id = last;
  put([...toasts.slice(-3), { id, tone, text }]);
  if (tone === "good") setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  put(toasts.filter((each) => each.id !== id));
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => toasts,
  );
  const isAway = useAway();
  return (
    <div className="toasts" role="status" aria-live="polite">
      {isAway && (
        <div className="toast tone-bad">
          <Icon name="alert" />
          <span>{SILENT} What is shown may be old.</span>
        </div>
      )}
      {shown.map((each) => (
        <div key={each.id} className={`toast tone-${each.tone}`}>
          <Icon name={each.tone === "good" ? "check" : "cross"} />
          <span>{each.text}</span>
          <Button kind="quiet" icon="cross" aria-label="close this message" onClick={() => dismiss(each.id)} />
        </div>
      ))}
    </div>
  );
}
