/** A button that copies an id or a name whole, where what is shown may be broken over lines. */
import { Button } from "./Button";
import { toast } from "./Toasts";

export function Copy({ text }: { text: string }) {
  return <Button kind="quiet" icon="copy" aria-label={`copy ${text}`} title="Copy" onClick={() => void copy(text)} />;
}

async function copy(text: string): Promise<void> {
  try {
    // A browser has a clipboard only for pages that came over TLS, or from this machine.
    if (!window.isSecureContext) throw new Error("no clipboard here");
    await navigator.clipboard.writeText(text);
  } catch {
    if (!copyMarked(text)) {
      toast("This browser does not let the page copy: mark it, and copy it with Ctrl-C.", "bad");
      return;
    }
  }
  toast("Copied.");
}

/** As somebody would by hand. */
function copyMarked(text: string): boolean {
  const field = document.createElement("textarea");
  const before = document.activeElement;
  field.value = text;
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  if (before instanceof HTMLElement) before.focus();
  return isDone;
}
