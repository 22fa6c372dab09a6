import { type ReactNode, useEffect, useId, useRef } from "react";
import { Button } from "./Button";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}

/** A window over the page: it keeps the focus, and Esc closes it. */
export function Dialog({ title, onClose, children, className = "" }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = box.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={box}
      className={`dialog ${className}`}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === box.current) onClose();
      }}
    >
      <div className="dialog-body">
        <header>
          <h2 id={heading}>{title}</h2>
          <Button kind="quiet" icon="cross" aria-label="close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}
