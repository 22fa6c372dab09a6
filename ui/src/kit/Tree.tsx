/** A tree whose branches open and close. */
import { type ReactNode, useState } from "react";
import { Button } from "./Button";
import { count } from "./format";
import "./tree.css";

interface Props {
  roots: readonly string[];
  below: (key: string) => readonly string[];
  line: (key: string) => ReactNode;
  label: string;
  /** How many levels are open at first. */
  open?: number;
}

const SHOWN = 50;

export function Tree({ roots, below, line, label, open = 6 }: Props) {
  return (
    <div className="tree" role="group" aria-label={label}>
      <Branches keys={roots} below={below} line={line} depth={0} open={open} />
    </div>
  );
}

interface Branch extends Omit<Props, "roots" | "label"> {
  keys: readonly string[];
  depth: number;
  open: number;
}

function Branches({ keys, depth, ...rest }: Branch) {
  const [most, setMost] = useState(SHOWN);
  return (
    <ul>
      {keys.slice(0, most).map((key, place) => (
        <BranchItem key={`${place} ${key}`} id={key} depth={depth} {...rest} />
      ))}
      {keys.length > most && (
        <li>
          <Button kind="quiet" icon="more" onClick={() => setMost(most + SHOWN * 4)}>
            {count(keys.length - most)} more
          </Button>
        </li>
      )}
    </ul>
  );
}

function BranchItem({ id, depth, below, line, open }: Omit<Branch, "keys"> & { id: string }) {
  const [isOpen, setOpen] = useState(depth < open);
  const children = below(id);
  if (children.length === 0) {
    return (
      <li>
        <div className="tree-line">{line(id)}</div>
      </li>
    );
  }
  return (
    <li>
      <div className="tree-line">
        <button
          type="button"
          className="tree-toggle"
          aria-expanded={isOpen}
          aria-label={
            isOpen ? "close this branch" : `open this branch of ${count(children.length)}`
          }
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? "−" : "+"}
        </button>
        {line(id)}
      </div>
      {isOpen && (
        <Branches keys={children} depth={depth + 1} below={below} line={line} open={open} />
      )}
    </li>
  );
}
