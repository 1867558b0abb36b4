import { CircleCheck } from 'lucide-react';
import type { ReactNode } from 'react';
import { useScopes } from '../../api/api-context.tsx';
import { useLive } from '../../api/live.ts';
import { ButtonLink } from '../../components/forms/button.tsx';
import { classes } from '../../components/layout/classes.ts';
import { Panel } from '../../components/layout/panel.tsx';
import { FirstRequestLines } from '../../components/text/first-request-lines.tsx';
import styles from './overview.module.css';

interface FirstStepsProps {
  readonly hasKey: boolean;
  readonly hasRequest: boolean;
}

/** From a new gateway to its first request. Each step is ticked off as soon as it is done, also elsewhere. */
export function FirstSteps({ hasKey, hasRequest }: FirstStepsProps) {
  const { can } = useScopes();
  const hasPlan = useHasPlan();
  return (
    <Panel title="Quick start" about="This is all it takes to see a first request here.">
      <ol className={styles.steps}>
        <BackendStep />
        <Step title="Decide on a limit" isDone={hasPlan}>
          <p>Keys without a plan have the default plan. A plan of your own can have several limits.</p>
          <div>
            {can('plans:write') && !hasPlan && <ButtonLink href="/plans?create">New plan</ButtonLink>}
          </div>
        </Step>
        <Step title="Create a key" isDone={hasKey}>
          <p>For one consumer. Its secret is shown once: copy it.</p>
          <div>
            {can('keys:write') && !hasKey && (
              <ButtonLink look="primary" href="/keys?create=true">
                New key
              </ButtonLink>
            )}
          </div>
        </Step>
        <Step title="Send a request" isDone={hasRequest}>
          <p role="status">
            {hasRequest
              ? 'The first request has arrived.'
              : 'It is forwarded to the backend, counted, and ticked off here within a few seconds.'}
          </p>
          <FirstRequestLines />
        </Step>
      </ol>
    </Panel>
  );
}

interface StepProps {
  readonly title: string;
  readonly isDone: boolean;
  readonly children: ReactNode;
}

function Step({ title, isDone, children }: StepProps) {
  return (
    <li className={classes(isDone && styles.done)}>
      <h3>
        {title}
        {isDone && (
          <>
            {' '}
            <CircleCheck aria-hidden="true" />
            <span className="visually-hidden">done</span>
          </>
        )}
      </h3>
      {children}
    </li>
  );
}

/** Whether the backend responds; left out by a gateway without one, and for a token that may not see it. */
function BackendStep() {
  const { data } = useLive(['system'], (client, signal) => client.GET('/tollgate/system', { signal }), {
    scope: 'plans:read',
  });
  if (data === undefined || data.backend === null) return null;
  const { reachable, address, fault } = data.backend;
  return (
    <Step title="Reach the backend" isDone={reachable}>
      <p>
        {reachable ? (
          <>
            <code>{address}</code> responds.
          </>
        ) : (
          <>
            <code>{address}</code> does not respond{fault !== null && `: ${fault}`}. Check{' '}
            <code>BACKEND_URL</code>.
          </>
        )}
      </p>
    </Step>
  );
}

/** Whether there is a plan beside the shipped one. */
function useHasPlan(): boolean {
  const plans = useLive(
    ['any-plan'],
    (client, signal) => client.GET('/rate-limit', { params: { query: { limit: 2 } }, signal }),
    { scope: 'plans:read' },
  );
  return plans.data?.rateLimits.some(({ rateLimitId }) => rateLimitId !== 'default') ?? false;
}
