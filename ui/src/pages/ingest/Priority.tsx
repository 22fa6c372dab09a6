/** Changes when the turn of a job, or of all open jobs of a batch, comes. */
import { type FormEvent, useState } from "react";
import type { Answer } from "../../api/client";
import { useAttempt } from "../../kit/attempt";
import { Button } from "../../kit/Button";
import { Dialog } from "../../kit/Dialog";
import { Offered } from "../../kit/Offered";
import { Refused } from "../../kit/Refused";

interface Props<T> {
  what: string;
  now?: number;
  run: (priority: number, why: string) => Promise<Answer<T>>;
  done: (value: T, priority: number) => string;
}

export function Priority<T>(props: Props<T>) {
  const [isOpen, setOpen] = useState(false);
  return (
    <Offered>
      <Button icon="up" onClick={() => setOpen(true)}>
        Priority
      </Button>
      {isOpen && <Asking {...props} onClose={() => setOpen(false)} />}
    </Offered>
  );
}

function Asking<T>({ what, now, run, done, onClose }: Props<T> & { onClose: () => void }) {
  const [priority, setPriority] = useState(now ?? 30);
  const [why, setWhy] = useState("");
  const { isBusy, problem, attempt } = useAttempt();
  async function set(event: FormEvent): Promise<void> {
    event.preventDefault();
    const kept = await attempt({ run: () => run(priority, why.trim()), done: (value) => done(value, priority) });
    if (kept !== null) onClose();
  }
  return (
    <Dialog title={`Priority of ${what}`} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void set(event)}>
        <p>The low number comes first: 0 is next, 99 is last. Work that is under way goes on.</p>
        <label>
          Priority{now === undefined ? "" : ` (now ${now})`}
          <input className="field" type="number" min={0} max={99} required value={priority} onChange={(event) => setPriority(Number(event.target.value))} autoFocus />
        </label>
        <label>
          Reason
          <input className="field" required maxLength={500} value={why} onChange={(event) => setWhy(event.target.value)} />
        </label>
        <Refused problem={problem} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={isBusy || !why.trim()}>
            Set the priority
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}
