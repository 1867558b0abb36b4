import { Link } from 'wouter';
import { useLive } from '../../api/live.ts';
import styles from './key-name.module.css';

interface KeyNameProps {
  readonly id: string;
  /** Where it is known already; null: of a key that was deleted. */
  readonly name?: string | null | undefined;
}

/** A link to a key by its name, or by its id while the name is not known: of a deleted key, for example. */
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
    <Link className={styles.name} href={`/keys/${encodeURIComponent(id)}`}>
      <bdi>{known ?? id}</bdi>
    </Link>
  );
}
