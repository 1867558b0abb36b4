import { CopyButton } from '../../components/forms/copy-button.tsx';
import { Facts } from '../../components/layout/facts.tsx';
import { Panel } from '../../components/layout/panel.tsx';
import { EndTime } from '../../components/text/relative-time.tsx';
import type { Webhook } from './shown-webhook.ts';
import styles from './webhooks.module.css';

/** What is sent, and where to. */
export function WebhookSettingsPanel({ webhook }: { readonly webhook: Webhook }) {
  const { url, events, onlyTags, headers, batch, secretHint, rotation, managedBy } = webhook;
  return (
    <Panel title="Settings">
      <Facts
        facts={[
          [
            'Address',
            <span key="url" className={styles.address}>
              <code>{url}</code>
              <CopyButton text={url} what="address" />
            </span>,
          ],
          [
            'Events',
            <ul key="events" className={styles.patterns}>
              {events.map((pattern) => (
                <li key={pattern}>
                  <code>{pattern}</code>
                </li>
              ))}
            </ul>,
          ],
          ['Only with tags', onlyTags.length === 0 ? 'any' : onlyTags.join(', ')],
          ['Headers', <Headers key="headers" headers={headers} />],
          ['Usage events', batch ? 'up to 500 in one request' : 'one in each request'],
          [
            'Secret',
            <span key="secret">
              <code>{secretHint}</code>
              {rotation !== null && (
                <>
                  , beside the previous one, which ends <EndTime at={rotation.previousValidUntil} />
                </>
              )}
            </span>,
          ],
          ...(managedBy === null ? [] : [['Managed by', `the configuration of ${managedBy}`] as const]),
        ]}
      />
    </Panel>
  );
}

function Headers({ headers }: Pick<Webhook, 'headers'>) {
  const names = Object.entries(headers);
  if (names.length === 0) return 'none';
  return (
    <ul className={styles.patterns}>
      {names.map(([name, mask]) => (
        <li key={name}>
          <code>
            {name}: {mask}
          </code>
        </li>
      ))}
    </ul>
  );
}
