import { TriangleAlert } from 'lucide-react';
import { Component, type ReactNode } from 'react';
import { Button } from '../components/forms/button.tsx';
import { EmptyState } from '../components/states/empty-state.tsx';

interface State {
  readonly error: unknown;
}

/** Shown in place of a part that fails: its code has a fault, or a new version has replaced its files. */
export function PageFault({ title = 'This page can’t be shown' }: { readonly title?: string }) {
  return (
    // Nothing else may be left on the page that a screen reader would find.
    <div role="alert">
      <EmptyState
        icon={TriangleAlert}
        title={title}
        action={<Button onClick={() => window.location.reload()}>Load again</Button>}
      >
        The gateway may have a newer version of the console. If it happens again after loading, it is a fault
        of the console.
      </EmptyState>
    </div>
  );
}

/** Keeps the rest of the console working if a page fails. */
export class PageErrorBoundary extends Component<{ readonly children: ReactNode }, State> {
  override state: State = { error: undefined };

  static getDerivedStateFromError(error: unknown): State {
    return { error };
  }

  override render(): ReactNode {
    return this.state.error === undefined ? this.props.children : <PageFault />;
  }
}
