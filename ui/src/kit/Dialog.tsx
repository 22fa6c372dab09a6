import { type ReactNode, useId, useLayoutEffect, useRef } from "react";
import { Button } from "./Button";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}

/**
 * The props of a dialog over the page, which is open while it is mounted. It traps the focus and
 * returns it afterwards. Esc and a click beside it close it.
 */
export function useModal(onClose: () => void) {
  const box = useRef<HTMLDialogElement>(null);
  const pressed = useRef<EventTarget | null>(null);
  // Close it before it leaves the document: after that it cannot return the focus.
  useLayoutEffect(() => {
    const dialog = box.current;
    if (dialog && !dialog.open) dialog.showModal();
    return () => dialog?.close();
  }, []);
  return {
    ref: box,
    onCancel: (event: React.SyntheticEvent) => {
      event.preventDefault();
      onClose();
    },
    onPointerDown: (event: React.PointerEvent) => {
      pressed.current = event.target;
    },
    // A text selection may end beside the dialog, and the second click of a double click on the
    // button that opened it lands there too: neither closes it.
    onClick: (event: React.MouseEvent) => {
      if (event.target === box.current && pressed.current === box.current && event.detail < 2)
        onClose();
    },
  };
}

export function Dialog({ title, onClose, children, className = "" }: Props) {
  const modal = useModal(onClose);
  const heading = useId();
  return (
    <dialog {...modal} className={`dialog ${className}`} aria-labelledby={heading}>
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
