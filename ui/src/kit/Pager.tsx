import "./picker.css";
import { Button } from "./Button";

interface Props {
  /** Open the first part; null if it is shown. */
  onFirst: (() => void) | null;
  /** Open the next part; null if this is the last. */
  onNext: (() => void) | null;
  first?: string;
  next?: string;
}

/** The buttons of a list that is read in parts and whose length is unknown. */
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
