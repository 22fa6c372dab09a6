/** A time with a tooltip for pointer and keyboard: the full time, in UTC and in local time. */
import { type ReactNode, type RefObject, useId, useLayoutEffect, useRef, useState } from "react";
import { createPortal } from "react-dom";
import { utcTime, localTime } from "./format";

const APART = 6;

interface Props {
  at: string;
  className?: string;
  children: ReactNode;
}

export function Timestamp({ at, className, children }: Props) {
  const [isShown, setShown] = useState(false);
  const time = useRef<HTMLTimeElement>(null);
  const tooltip = useId();
  return (
    <time
      ref={time}
      dateTime={at}
      tabIndex={0}
      {...(className ? { className } : {})}
      {...(isShown ? { "aria-describedby": tooltip } : {})}
      onPointerEnter={() => setShown(true)}
      onPointerLeave={() => setShown(false)}
      onFocus={() => setShown(true)}
      onBlur={() => setShown(false)}
      onKeyDown={(event) => {
        if (event.key === "Escape" && isShown) setShown(false);
      }}
    >
      {children}
      {isShown && <FullTime id={tooltip} moment={Date.parse(at)} under={time} />}
    </time>
  );
}

interface FullTimeProps {
  id: string;
  moment: number;
  under: RefObject<HTMLElement | null>;
}

/** The tooltip: a popover, so that it lies over dialogs too and moves nothing. */
function FullTime({ id, moment, under }: FullTimeProps) {
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
    // The browser scrolls to the focused element afterwards.
    window.addEventListener("scroll", place, true);
    return () => window.removeEventListener("scroll", place, true);
  }, [under]);
  return createPortal(
    <div ref={box} id={id} popover="manual" role="tooltip" className="in-full">
      <span className="num">{utcTime(moment)}</span>
      {localTime(moment) && <span className="num">{localTime(moment)}</span>}
    </div>,
    document.body,
  );
}
