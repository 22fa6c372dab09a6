import { type ReactNode, useEffect } from "react";
import { Button } from "./Button";

/** Details beside a view, which stays usable. Esc closes it. */
export function Drawer({
  title,
  onClose,
  children,
}: {
  title: ReactNode;
  onClose: () => void;
  children: ReactNode;
}) {
  useEffect(() => {
    function close(event: KeyboardEvent): void {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) onClose();
    }
    window.addEventListener("keydown", close);
    return () => window.removeEventListener("keydown", close);
  }, [onClose]);
  return (
    <aside className="drawer" aria-label="details">
      <header>
        <h2>{title}</h2>
        <Button kind="quiet" icon="cross" aria-label="close the details" onClick={onClose} />
      </header>
      <div className="drawer-body">{children}</div>
    </aside>
  );
}
