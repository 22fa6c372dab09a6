import type { AnchorHTMLAttributes, MouseEvent } from "react";
import { navigate } from "./router";

type Props = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string };

/** A link within this page. With Ctrl, Shift or the middle button it is an ordinary link. */
export function Link({ to, onClick, ...rest }: Props) {
  function follow(event: MouseEvent<HTMLAnchorElement>): void {
    onClick?.(event);
    const plain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (event.defaultPrevented || !plain || rest.target) return;
    event.preventDefault();
    navigate(to);
  }
  return <a {...rest} href={to} onClick={follow} />;
}
