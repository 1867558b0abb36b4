import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { LOCALE } from '../../console/format/locale.ts';
import { now } from '../../console/format/now.ts';
import { instantInWords } from '../shared/instant-in-words.ts';
import { Text } from '../shared/text.tsx';
import { WORDS } from '../words.ts';
import { Examples } from './examples.tsx';
import { LimitsPanel, planText } from './limits-panel.tsx';
import { type OwnKey, type SelfService, SelfServiceFault } from './own-key.ts';
import type { PageFacts } from './page-facts.ts';
import { RotatePanel } from './rotate-panel.tsx';
import { UsagePanels } from './usage-panels.tsx';

const { portal: words } = WORDS;

interface KeyPageProps {
  readonly service: SelfService;
  readonly first: OwnKey;
  readonly facts: PageFacts;
  /** The key is no longer valid. */
  readonly onEnded: (reason: string) => void;
  /** As of `RotatePanel`. */
  readonly onNewSecret: (isThere: boolean) => void;
}

/** A minute: windows of seconds change too quickly to be watched, and each look costs the gateway three requests. */
const REFRESH_MS = 60_000;

/** Everything that a consumer may know of their key. */
export function KeyPage({ service, first, facts, onEnded, onNewSecret }: KeyPageProps) {
  const [shown, setShown] = useState({ key: first, at: now() });
  const [fault, setFault] = useState<string>();
  /** Whether the consumer has asked for the last look. */
  const [isAsked, setAsked] = useState(false);
  const isSecretShown = useRef(false);
  const heading = useRef<HTMLHeadingElement>(null);
  // The form that had the focus has gone.
  useLayoutEffect(() => heading.current?.focus(), []);
  const looks = useRef({ begun: 0, ended: 0 });
  useEffect(
    () => () => {
      // Another key may sign in: no response matters any more.
      looks.current.ended = Number.POSITIVE_INFINITY;
    },
    [],
  );
  const refresh = useCallback(async () => {
    looks.current.begun += 1;
    const look = looks.current.begun;
    /** False if a later look has ended before this one. */
    const isLatest = () => {
      looks.current.ended = Math.max(look, looks.current.ended);
      return looks.current.ended === look;
    };
    try {
      const key = await service.key();
      if (!isLatest()) return;
      setShown({ key, at: now() });
      setFault(undefined);
    } catch (error) {
      if (!(error instanceof SelfServiceFault)) throw error;
      if (!isLatest()) return;
      if (ENDING.has(error.code) && !isSecretShown.current) onEnded(error.message);
      else setFault(error.message);
    }
  }, [service, onEnded]);
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState !== 'visible') return;
      setAsked(false);
      void refresh();
    }, REFRESH_MS);
    return () => clearInterval(timer);
  }, [refresh]);
  const onSecret = (isShown: boolean) => {
    isSecretShown.current = isShown;
    void refresh();
  };
  const refreshNow = () => {
    setAsked(true);
    void refresh();
  };
  const { key, at } = shown;
  return (
    <div class="page">
      <section class="intro">
        <h1 ref={heading} tabIndex={-1}>
          <Text>{key.name}</Text>
        </h1>
        <p>
          <Text>{planText(key)}</Text>
        </p>
        <p class="soft">
          <Text>{expiryText(key.expiresAt, at)}</Text>
        </p>
        <p class="row soft">
          {/* Not read out at each automatic refresh. */}
          <span aria-live={isAsked ? 'polite' : 'off'}>
            <span key={at}>{words.asOf(new Date(at).toLocaleTimeString(LOCALE))}</span>
          </span>
          <button type="button" onClick={refreshNow}>
            {words.refresh}
          </button>
        </p>
        {fault !== undefined && (
          <p class="warning" role="alert">
            <Text>{fault}</Text>
          </p>
        )}
      </section>
      <LimitsPanel limits={key.limits} at={at} />
      <UsagePanels service={service} at={at} />
      <Examples apiUrl={facts.apiUrl} />
      <RotatePanel service={service} apiKey={key} onSecret={onSecret} onNewSecret={onNewSecret} />
    </div>
  );
}

/** The key can't be used again with the secret that the page has. */
const ENDING: ReadonlySet<string> = new Set([
  'invalid_api_key',
  'secret_lost',
  'key_disabled',
  'key_expired',
]);
const DAY_MS = 86_400_000;

function expiryText(expiresAt: string | null, at: number): string {
  if (expiresAt === null) return words.neverExpires;
  const days = Math.floor((Date.parse(expiresAt) - at) / DAY_MS);
  return words.expires(instantInWords(expiresAt), days);
}
