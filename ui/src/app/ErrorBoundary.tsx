import { Component, type ReactNode } from "react";
import { Button } from "../kit/Button";
import { Empty } from "../kit/Shown";

/** Keeps an error in one view from taking the whole page with it. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }

  override render(): ReactNode {
    if (!this.state.error) return this.props.children;
    return (
      <Empty icon="alert" title="This view broke">
        <p>{this.state.error.message}</p>
        <Button onClick={() => window.location.reload()}>Load the page again</Button>
      </Empty>
    );
  }
}
