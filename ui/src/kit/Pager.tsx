import "./pick.css";
import { Button } from "./Button";

interface Props {
  /** Back to the newest, or the first; null if that is what is shown. */
  onFirst: (() => void) | null;
  /** On to the next part; null if this is the last. */
  onNext: (() => void) | null;
  first?: string;
  next?: string;
}

/** The way through a list that is read part by part, where its whole length is not known. */
export function Pager({ onFirst, onNext, first = "Newest", next = "Older" }: Props) {
  if (!onFirst && !onNext) return null;
  return (
    <nav className="pager" aria-label="parts of the list">
      <Button icon="left" disabled={!onFirst} onClick={() => onFirst?.()}>
        {first}
      </Button>
      <Button icon="right" disabled={!onNext} onClick={() => onNext?.()}>
        {next}
      </Button>
    </nav>
  );
}
