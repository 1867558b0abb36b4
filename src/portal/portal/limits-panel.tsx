import { LOCALE } from '../../console/format/locale.ts';
import { formatNumber } from '../../console/format/numbers.ts';
import { planWords, rateWords } from '../../console/pages/plans/limit-words.ts';
import { instantInWords } from '../shared/instant-in-words.ts';
import { Text } from '../shared/text.tsx';
import { WORDS } from '../words.ts';
import type { OwnKey, Window } from './own-key.ts';

const { limits: words } = WORDS.portal;

/** Limits in shadow mode are a trial of the administrator, and reject nothing. */
function enforced(limits: OwnKey['limits']): readonly Window[] {
  return limits.filter(({ mode }) => mode === 'enforce');
}

/** "Your plan “gold” allows 1,000 a day." Of several limits it says no more than that the plan has them: each but the main one may be for some requests. */
export function planText({ rateLimitId, limits }: Pick<OwnKey, 'rateLimitId' | 'limits'>): string {
  const [main, ...others] = enforced(limits);
  if (rateLimitId === null || main === undefined) return words.unlimited;
  const additionalLimits = others.map(({ limitId, limit, period, per }) => ({ limitId, limit, period, per }));
  const inWords = planWords({ ...main, additionalLimits });
  return others.length === 0 ? words.plan(rateLimitId, inWords) : words.planOfSeveral(rateLimitId, inWords);
}

interface LimitsPanelProps {
  readonly limits: OwnKey['limits'];
  readonly at: number;
}

/** Each window: what is left of it, and when it resets. */
export function LimitsPanel({ limits, at }: LimitsPanelProps) {
  const windows = enforced(limits);
  if (windows.length === 0) return null;
  return (
    <section class="panel">
      <h2>{words.title}</h2>
      {windows.length > 1 && <p class="soft">{words.someRequests}</p>}
      <ul class="windows">
        {windows.map((window) => (
          <WindowItem key={`${window.limitId} ${window.period}`} window={window} at={at} />
        ))}
      </ul>
    </section>
  );
}

function WindowItem({ window, at }: { readonly window: Window; readonly at: number }) {
  const { limitId, remaining, limit, granted, per } = window;
  const room = limit + (granted ?? 0);
  const name = limitId === 'main' ? rateWords(window) : `${limitId}: ${rateWords(window)}`;
  if (per === 'customer')
    return (
      <li>
        <strong>
          <Text>{name}</Text>
        </strong>
        <p class="soft">
          <Text>{words.perCustomer}</Text>
        </p>
      </li>
    );
  if (remaining === null)
    return (
      <li>
        <strong>
          <Text>{name}</Text>
        </strong>
        <p class="soft">
          <Text>{words.unknown}</Text>
        </p>
      </li>
    );
  return (
    <li>
      <strong>
        <Text>{name}</Text>
      </strong>
      <p>
        <Text>{words.left(formatNumber(remaining), formatNumber(room))}</Text>
      </p>
      <meter
        class={remaining === 0 ? 'empty' : remaining <= room / 5 ? 'low' : ''}
        aria-label={words.meter(name)}
        min={0}
        max={Math.max(room, 1)}
        value={remaining}
      />
      <p class="soft">
        <Text>{resetText(window, at)}</Text>
      </p>
    </li>
  );
}

function resetText({ open, resetTime }: Window, at: number): string {
  if (open !== true || resetTime === null) return words.notOpen;
  return words.resets(instantInWords(resetTime), durationText(Date.parse(resetTime) - at));
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
] as const;

/** "in 3 hours" */
function durationText(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const [unit, size] = UNITS.find(([, size]) => seconds >= 2 * size) ?? (['second', 1] as const);
  return new Intl.RelativeTimeFormat(LOCALE).format(Math.round(seconds / size), unit);
}
