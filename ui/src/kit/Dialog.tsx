import { type ReactNode, useId, useLayoutEffect, useRef } from "react";
import { Button } from "./Button";

interface Props {
  title: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
}

/**
 * A window over the page, open as long as it is drawn: it keeps the focus, and gives it back to
 * where it was. Esc closes it, and so does a press beside it.
 */
export function useModal(onClose: () => void) {
  const box = useRef<HTMLDialogElement>(null);
  const pressed = useRef<EventTarget | null>(null);
  // Once it has left the page, a dialog that is closed gives the focus back to nobody.
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
    // Who marks text and lets go beside the window has pressed within it; who clicks twice meant
    // the button that opened it.
    onClick: (event: React.MouseEvent) => {
      if (event.target === box.current && pressed.current === box.current && event.detail < 2) onClose();
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
