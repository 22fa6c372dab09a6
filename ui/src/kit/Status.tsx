import { Icon } from "./Icon";
import { lookOf, type Tone } from "./states";

/** A state as an icon and a word, never by color alone. */
export function Status({ of: state, label }: { of: string | null | undefined; label?: string }) {
  const look = lookOf(state);
  return (
    <span className={`status tone-${look.tone}`}>
      <Icon name={look.icon} size={13} />
      {label ?? look.word}
    </span>
  );
}

/** A state as an icon, with its word for screen readers. */
export function StatusIcon({ of: state }: { of: string | null | undefined }) {
  const look = lookOf(state);
  return (
    <span
      className={`status-icon tone-${look.tone}`}
      role="img"
      aria-label={look.word}
      title={look.word}
    >
      <Icon name={look.icon} size={13} />
    </span>
  );
}

/** A word in a tone. */
export function Tag({ tone = "none", children }: { tone?: Tone; children: React.ReactNode }) {
  return <span className={`tag tone-${tone}`}>{children}</span>;
}
