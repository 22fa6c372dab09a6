/** The priority of a job, or of all open jobs of a batch. */
import { type FormEvent, useState } from "react";
import type { Answer } from "../../api/client";
import { Button } from "../../kit/Button";
import { Dialog } from "../../kit/Dialog";
import { IfAllowed } from "../../kit/IfAllowed";
import { MutationError } from "../../kit/MutationError";
import { useApiMutation } from "../../kit/useApiMutation";

interface Props<T> {
  subject: string;
  now?: number;
  send: (priority: number, why: string) => Promise<Answer<T>>;
  done: (value: T, priority: number) => string;
}

export function PriorityButton<T>(props: Props<T>) {
  const [isOpen, setOpen] = useState(false);
  return (
    <IfAllowed>
      <Button icon="up" onClick={() => setOpen(true)}>
        Priority
      </Button>
      {isOpen && <PriorityDialog {...props} onClose={() => setOpen(false)} />}
    </IfAllowed>
  );
}

function PriorityDialog<T>({
  subject,
  now,
  send,
  done,
  onClose,
}: Props<T> & { onClose: () => void }) {
  const [priority, setPriority] = useState(now ?? 30);
  const [why, setWhy] = useState("");
  const { mutate, isPending, error } = useApiMutation({
    send: () => send(priority, why.trim()),
    done: (value: T) => done(value, priority),
  });
  function submit(event: FormEvent): void {
    event.preventDefault();
    mutate(undefined, { onSuccess: onClose });
  }
  return (
    <Dialog title={`Priority of ${subject}`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <p>Low numbers run first: 0 is next, 99 is last. Running work continues.</p>
        <label>
          Priority{now === undefined ? "" : ` (now ${now})`}
          <input
            className="field"
            type="number"
            min={0}
            max={99}
            required
            value={priority}
            onChange={(event) => setPriority(Number(event.target.value))}
            autoFocus
          />
        </label>
        <label>
          Reason
          <input
            className="field"
            required
            maxLength={500}
            value={why}
            onChange={(event) => setWhy(event.target.value)}
          />
        </label>
        <MutationError problem={error} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={isPending || !why.trim()}>
            Set priority
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
