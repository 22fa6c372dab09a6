import { Component, type ReactNode } from "react";
import { Button } from "../kit/Button";
import { EmptyState } from "../kit/Async";

/** The message in place of a view that threw; the rest of the page stays. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children;
    return (
      <EmptyState icon="alert" title="This view failed">
        <p>{this.state.error.message}</p>
        <Button onClick={() => window.location.reload()}>Reload the page</Button>
      </EmptyState>
    );
  }
}
