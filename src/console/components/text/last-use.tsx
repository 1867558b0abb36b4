import { RelativeTime } from './relative-time.tsx';

/** "last used 2 days ago", or "never used". */
export function LastUse({ at }: { readonly at: string | null }) {
  if (at === null) return 'never used';
  return (
    <>
      last used <RelativeTime at={at} />
    </>
  );
}
