import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { type Scope, useScopes } from '../../api/api-context.tsx';

interface PageLinkProps {
  readonly href: string;
  /** The scope that the page needs. */
  readonly scope: Scope;
  readonly className?: string | undefined;
  readonly children: ReactNode;
}

/** A link to another page; only its text if the token may not see that page. */
export function PageLink({ href, scope, className, children }: PageLinkProps) {
  const { can } = useScopes();
  if (!can(scope)) return <span className={className}>{children}</span>;
  return (
    <Link className={className} href={href}>
      {children}
    </Link>
  );
}
