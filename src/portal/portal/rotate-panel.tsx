import { useEffect, useRef, useState } from 'preact/hooks';
import { newIdempotencyKey } from '../../client/idempotency-key.ts';
import { SUGGESTED_GRACE_SECONDS } from '../../client/suggested-grace.ts';
import { CopyButton } from '../shared/copy-button.tsx';
import { instantInWords } from '../shared/instant-in-words.ts';
import { Text } from '../shared/text.tsx';
import { WORDS } from '../words.ts';
import { type OwnKey, type SelfService, SelfServiceFault } from './own-key.ts';

const { rotate: words } = WORDS.portal;

interface RotatePanelProps {
  readonly service: SelfService;
  readonly apiKey: OwnKey;
  /** A new secret is shown, or no longer. It is shown only once: until then the panel must stay. */
  readonly onSecret: (isShown: boolean) => void;
  /** A new secret is made or shown, or no longer: it would be lost with the page. Called with false when the panel goes. */
  readonly onNewSecret: (isThere: boolean) => void;
}

/** A new secret for the key, where it allows that. */
export function RotatePanel({ service, apiKey, onSecret, onNewSecret }: RotatePanelProps) {
  const [made, setMade] = useState<{ readonly secret: string; readonly until: string | null }>();
  const [isUnsettled, setUnsettled] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  const isThere = made !== undefined || isUnsettled;
  useEffect(() => {
    onNewSecret(isThere);
    return () => onNewSecret(false);
  }, [isThere, onNewSecret]);
  const show = (next: typeof made) => {
    setMade(next);
    onSecret(next !== undefined);
    // The button that had the focus goes.
    heading.current?.focus();
  };
  if (!apiKey.selfService.includes('rotate') && made === undefined) return null;
  return (
    <section class="panel">
      <h2 ref={heading} tabIndex={-1}>
        {words.title}
      </h2>
      {made !== undefined ? (
        <>
          <p class="warning" role="status">
            {words.keepNow}
          </p>
          <code class="secret" translate={false} data-secret>
            {made.secret}
          </code>
          <CopyButton text={made.secret} />
          <p>{made.until === null ? words.previousEnded : words.previousUntil(made.until)}</p>
          <button type="button" onClick={() => show(undefined)}>
            {words.done}
          </button>
        </>
      ) : apiKey.rotation !== null && !isUnsettled ? (
        <p>{words.during(instantInWords(apiKey.rotation.previousValidUntil))}</p>
      ) : (
        <RotateForm
          service={service}
          isUnsettled={isUnsettled}
          onUnsettled={setUnsettled}
          onMade={(secret, until) => show({ secret, until })}
        />
      )}
    </section>
  );
}

interface RotateFormProps {
  readonly service: SelfService;
  /** A rotation is under way, or its response was lost: only this form can bring its secret. */
  readonly isUnsettled: boolean;
  readonly onUnsettled: (isUnsettled: boolean) => void;
  readonly onMade: (secret: string, until: string | null) => void;
}

function RotateForm({ service, isUnsettled, onUnsettled, onMade }: RotateFormProps) {
  const [grace, setGrace] = useState<number>(SUGGESTED_GRACE_SECONDS);
  const [fault, setFault] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  // The same for each try with this grace: if only the response was lost, the next one brings the same secret. Without a grace it gets 401.
  const attempt = useRef({ grace, id: newIdempotencyKey() });
  const rotate = async () => {
    if (isBusy) return;
    if (attempt.current.grace !== grace) attempt.current = { grace, id: newIdempotencyKey() };
    setBusy(true);
    onUnsettled(true);
    setFault(undefined);
    try {
      const { secret = '', previousValidUntil } = await service.rotate(grace, attempt.current.id);
      onUnsettled(false);
      onMade(secret, grace === 0 ? null : instantInWords(previousValidUntil));
    } catch (error) {
      setFault(String(error instanceof Error ? error.message : error));
      if (error instanceof SelfServiceFault && error.isRejection) {
        // After a lost response, only this rejection says that the earlier try was not performed: else its secret would come again.
        if (!isUnsettled || error.code === 'rotation_in_progress') onUnsettled(false);
      }
    }
    setBusy(false);
  };
  return (
    <>
      <p class="soft">{words.intro}</p>
      <fieldset class="graces" disabled={isUnsettled}>
        <legend>{words.legend}</legend>
        {words.graces.map(({ seconds, label, consequence }) => (
          <label key={seconds}>
            <input type="radio" name="grace" checked={seconds === grace} onChange={() => setGrace(seconds)} />
            <span>
              {label} <small>{consequence}</small>
            </span>
          </label>
        ))}
      </fieldset>
      {fault !== undefined && (
        <p class="warning" role="alert">
          <Text>{fault}</Text>
        </p>
      )}
      <button type="button" class="primary" onClick={rotate} aria-disabled={isBusy}>
        <Text>{isBusy ? words.busy : words.submit}</Text>
      </button>
    </>
  );
}
