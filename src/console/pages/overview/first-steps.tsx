import { useScopes } from '../../api/api-context.tsx';
import { useConsumerAddress } from '../../api/consumer-address.ts';
import { ButtonLink } from '../../components/forms/button.tsx';
import { CopyButton } from '../../components/forms/copy-button.tsx';
import { Panel } from '../../components/layout/panel.tsx';
import firstSteps from './first-steps.module.css';
import styles from './overview.module.css';

/** Shown as long as there are no keys: the steps to a first request. */
export function FirstSteps() {
  const { can } = useScopes();
  const address = useConsumerAddress();
  const line = `curl -i -H 'Authorization: Bearer <secret>' ${address}`;
  return (
    <Panel title="First steps" about="No key exists yet. This is all it takes to see a first request here.">
      <ol className={styles.steps}>
        <li>
          <h3>Decide on a limit</h3>
          <p>Keys without a plan have the default plan. A plan of your own can have several limits.</p>
          <div>{can('plans:write') && <ButtonLink href="/plans?create">New plan</ButtonLink>}</div>
        </li>
        <li>
          <h3>Create a key</h3>
          <p>For one consumer. Its secret is shown once: copy it.</p>
          <div>
            {can('keys:write') && (
              <ButtonLink look="primary" href="/keys?create=true">
                New key
              </ButtonLink>
            )}
          </div>
        </li>
        <li>
          <h3>Send a request</h3>
          <p>It is forwarded to the backend, counted, and appears above within a few seconds.</p>
          <div className={firstSteps.line}>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard */}
            <pre tabIndex={0}>{line}</pre>
            <CopyButton text={line} what="curl line" />
          </div>
        </li>
      </ol>
    </Panel>
  );
}
