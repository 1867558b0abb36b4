import { useEffect, useState } from 'react';
import { bodyOf } from '../../../../client/management-client.ts';
import { useApi, useScopes } from '../../../api/api-context.tsx';
import { useConsumerAddress } from '../../../api/consumer-address.ts';
import { useAnnouncedCall } from '../../../api/use-announced-call.ts';
import { Button } from '../../../components/forms/button.tsx';
import { CopyButton } from '../../../components/forms/copy-button.tsx';
import { focusAround } from '../../../components/forms/focus-around.ts';
import { Panel } from '../../../components/layout/panel.tsx';
import { toast } from '../../../components/states/toast.tsx';
import type { KeyDetail } from '../key-model.ts';
import styles from './key-page.module.css';

const SHOWN_MS = 30_000;

/** Shows the secret for half a minute on request, with an entry in the audit log, and a command that tries the key. */
export function KeySecretPanel({ apiKey }: { readonly apiKey: KeyDetail }) {
  const { can } = useScopes();
  const { settings } = useApi().whoami;
  const mayReveal = can('keys:secret') && settings.secretReveal === 'always';
  const curl = `curl -i "${useConsumerAddress()}" -H "Authorization: Bearer $API_KEY"`;
  return (
    <Panel title="Secret" about={mayReveal ? 'Each time that it is shown is in the audit log' : undefined}>
      <div className={styles.stack}>
        {/* Keyed: after a rotation the secret from before it is no longer shown. Two secrets may have one hint. */}
        <Secret key={`${apiKey.secretHint} ${apiKey.lastUpdated}`} apiKey={apiKey} mayReveal={mayReveal} />
        <div>
          <p className={styles.faint}>
            Try the key, with its secret in API_KEY, at the address of consumers:
          </p>
          <div className={styles.line}>
            <code>{curl}</code>
            <CopyButton text={curl} what="curl line" />
          </div>
        </div>
      </div>
    </Panel>
  );
}

function Secret({ apiKey, mayReveal }: { readonly apiKey: KeyDetail; readonly mayReveal: boolean }) {
  const { consumerApiKeyId, secretHint } = apiKey;
  const { secret, reveal, hide, isPending } = useRevealedSecret(consumerApiKeyId);
  const isShown = secret !== undefined;
  return (
    <div>
      <div className={styles.line}>
        <code>{secret ?? secretHint ?? 'known to its consumer only'}</code>
        {isShown && <CopyButton text={secret} what="secret" />}
        {/* One button for both, so that it keeps the focus. A held key must not reveal the secret again and again. */}
        {(isShown || (mayReveal && secretHint !== null)) && (
          <Button
            ref={focusAround}
            small
            aria-disabled={isPending}
            onClick={isShown ? hide : reveal}
            onKeyDown={(event) => event.repeat && event.key === 'Enter' && event.preventDefault()}
          >
            {isShown ? 'Hide' : 'Reveal'}
          </Button>
        )}
      </div>
      {isShown && (
        <p className={styles.faint} role="status">
          It hides by itself after 30 seconds.
        </p>
      )}
    </div>
  );
}

/** The secret, for a short time after it was requested. */
function useRevealedSecret(consumerApiKeyId: string) {
  const { client } = useApi();
  // Not in the query cache: there it would outlast this panel.
  const [secret, setSecret] = useState<string>();
  // One at a time: each read is an entry in the audit log.
  const { isPending, run } = useAnnouncedCall('The secret could not be read');
  useEffect(() => {
    if (secret === undefined) return;
    const timer = setTimeout(() => setSecret(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [secret]);
  const reveal = () =>
    run(async () => {
      const call = client.GET('/consumer-api-key/{consumerApiKeyId}', {
        params: { path: { consumerApiKeyId } },
      });
      const shown = (await bodyOf(call)).secret;
      if (shown.endsWith('*'))
        toast.failed('The gateway does not have this secret', 'Only its hash was imported.');
      else setSecret(shown);
    });
  return { secret, reveal, hide: () => setSecret(undefined), isPending };
}
