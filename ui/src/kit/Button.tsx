import type { ButtonHTMLAttributes } from "react";
import { Link } from "../router/Link";
import { Icon, type IconName } from "./Icon";

type Kind = "plain" | "primary" | "danger" | "quiet";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: Kind;
  icon?: IconName;
}

export function Button({ kind = "plain", icon, className = "", children, ...rest }: Props) {
  return (
    <button
      type="button"
      {...rest}
      className={`button ${kind} ${children ? "" : "bare"} ${className}`}
    >
      {icon && <Icon name={icon} size={14} />}
      {children}
    </button>
  );
}

/** A link that looks like a button. */
export function ButtonLink({
  to,
  icon,
  kind = "plain",
  children,
}: {
  to: string;
  icon?: IconName;
  kind?: Kind;
  children: React.ReactNode;
}) {
  return (
    <Link to={to} className={`button ${kind}`}>
      {icon && <Icon name={icon} size={14} />}
      {children}
    </Link>
  );
}
