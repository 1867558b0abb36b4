import { useLive } from '../../api/live.ts';
import styles from './key-name.module.css';
import { PageLink } from './page-link.tsx';

interface KeyNameProps {
  readonly id: string;
  /** The name, if it is already known; null for a deleted key. */
  readonly name?: string | null | undefined;
}

/** A link to a key, with its name; with its id if the name is unknown, for example of a deleted key. */
export function KeyName({ id, name }: KeyNameProps) {
  const key = useLive(
    ['key-name', id],
    (client, signal) =>
      client.GET('/consumer-api-key/{consumerApiKeyId}', {
        params: { path: { consumerApiKeyId: id }, query: { reveal: 'false' } },
        signal,
      }),
    { scope: 'keys:read', pollMs: false, enabled: name === undefined },
  );
  const known = name ?? key.data?.name;
  if (name === null || key.status === 'not-found')
    return (
      <span className={styles.name}>
        <code>{id}</code> (deleted)
      </span>
    );
  return (
    <PageLink className={styles.name} scope="keys:read" href={`/keys/${encodeURIComponent(id)}`}>
      <bdi>{known ?? id}</bdi>
    </PageLink>
  );
}
