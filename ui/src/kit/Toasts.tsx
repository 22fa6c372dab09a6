/** Short messages about changes; errors stay until they are closed. */
import { isUnreachable } from "../api/reachability";
import { NO_ANSWER } from "../api/client";
import { createStore, useValue } from "../lib/store";
import { Button } from "./Button";
import { Icon } from "./Icon";

interface Toast {
  readonly id: number;
  readonly tone: "good" | "bad";
  readonly text: string;
}

const SHOWN_MS = 6_000;
const toasts = createStore<readonly Toast[]>([]);
let last = 0;

export function toast(text: string, tone: Toast["tone"] = "good"): void {
  last += 1;
  const id = last;
  toasts.set([...toasts.get().slice(-3), { id, tone, text }]);
  if (tone === "good") setTimeout(() => dismiss(id), SHOWN_MS);
}

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((each) => each.id !== id));
}

export function Toasts() {
  const messages = useValue(toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {useValue(isUnreachable) && (
        <div className="toast tone-bad">
          <Icon name="alert" />
          <span>{NO_ANSWER} The data may be old.</span>
        </div>
      )}
      {messages.map((each) => (
        <div key={each.id} className={`toast tone-${each.tone}`}>
          <Icon name={each.tone === "good" ? "check" : "cross"} />
          <span>{each.text}</span>
          <Button
            kind="quiet"
            icon="cross"
            aria-label="close this message"
            onClick={() => dismiss(each.id)}
          />
        </div>
      ))}
    </div>
  );
}
