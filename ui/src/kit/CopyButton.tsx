/** A button that copies an id or a name, which the page may break over lines. */
import { Button } from "./Button";
import { toast } from "./Toasts";

export function CopyButton({ text }: { text: string }) {
  return (
    <Button
      kind="quiet"
      icon="copy"
      aria-label={`copy ${text}`}
      title="Copy"
      onClick={() => void copy(text)}
    />
  );
}

async function copy(text: string): Promise<void> {
  try {
    // Browsers offer the clipboard only to pages over TLS or from localhost.
    if (!window.isSecureContext) throw new Error("no clipboard here");
    await navigator.clipboard.writeText(text);
  } catch {
    if (!copyMarked(text)) {
      toast("The browser refused to copy. Select the text and press Ctrl-C.", "bad");
      return;
    }
  }
  toast("Copied.");
}

/** Copy through a selected text field. */
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
