/** A time that says itself in full, in UTC and as clocks here have it, to pointers and keyboards alike. */
import { type ReactNode, type RefObject, useId, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { absolute, here } from "./words";

const APART = 6;

interface Props {
  at: string;
  className?: string;
  children: ReactNode;
}

export function Moment({ at, className, children }: Props) {
  const [isShown, setShown] = useState(false);
  const shown = useRef<HTMLTimeElement>(null);
  const said = useId();
  return (
    <time
      ref={shown}
      dateTime={at}
      tabIndex={0}
      {...(className ? { className } : {})}
      {...(isShown ? { "aria-describedby": said } : {})}
      onPointerEnter={() => setShown(true)}
      onPointerLeave={() => setShown(false)}
      onFocus={() => setShown(true)}
      onBlur={() => setShown(false)}
      onKeyDown={(event) => {
        if (event.key === "Escape" && isShown) setShown(false);
      }}
    >
      {children}
      {isShown && <InFull id={said} moment={Date.parse(at)} under={shown} />}
    </time>
  );
}

interface InFullProps {
  id: string;
  moment: number;
  under: RefObject<HTMLElement | null>;
}

/** It lies over everything, also over dialogs, and moves nothing. */
function InFull({ id, moment, under }: InFullProps) {
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const view = box.current;
    const time = under.current;
    if (!view || !time) return;
    const place = () => {
      const at = time.getBoundingClientRect();
      const { width, height } = view.getBoundingClientRect();
      const isRoom = at.bottom + APART + height < window.innerHeight;
      view.style.left = `${Math.max(APART, Math.min(at.left, window.innerWidth - width - APART))}px`;
      view.style.top = `${isRoom ? at.bottom + APART : at.top - APART - height}px`;
    };
    view.showPopover();
    place();
    // What gets the focus is scrolled to, after that.
    window.addEventListener("scroll", place, true);
    return () => window.removeEventListener("scroll", place, true);
  }, [under]);
  return createPortal(
    <div ref={box} id={id} popover="manual" role="tooltip" className="in-full">
      <span className="num">{absolute(moment)}</span>
      {here(moment) && <span className="num">{here(moment)}</span>}
    </div>,
    document.body,
  );
}
