import type { SeededRandom } from '../../chaos/seeded-random.ts';
import type { Original } from './original.ts';

/** A call of `/verify`. */
export interface VerifyCall {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Why it must be a 4xx; undefined: there must be a verdict. */
  readonly fault: string | undefined;
}

/** The request as a service describes it; one in four has a fault. */
export function verifyCall(
  random: SeededRandom,
  { method, path, address, customerId, origin }: Original,
  { secret, token }: { readonly secret: string; readonly token: string },
): VerifyCall {
  const described = { secret, method, path, address, customerId, origin };
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const good = JSON.stringify(described);
  if (random.between(1, 4) > 1) return { body: good, headers, fault: undefined };
  const { name, body = (text: string) => text, ...changed } = random.pick(FAULTS);
  return { body: body(good), headers: { ...headers, ...changed.headers }, fault: name };
}

interface Fault {
  readonly name: string;
  readonly body?: (text: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
}

const withField = (field: string) => (text: string) => text.replace(/\}$/, `,${field}}`);

const FAULTS: readonly Fault[] = [
  { name: 'half a body', body: (text) => text.slice(0, -5) },
  { name: 'no body', body: () => '' },
  { name: 'an array', body: (text) => `[${text}]` },
  { name: 'a large body', body: withField(`"x":"${'y'.repeat(2_000_000)}"`) },
  { name: 'deep nesting', body: () => '['.repeat(50_000) },
  { name: 'an unknown field', body: withField('"admin":true') },
  { name: 'another prototype', body: withField('"__proto__":{"secret":"x"}') },
  { name: 'a negative cost', body: withField('"cost":-1') },
  { name: 'a broken cost', body: withField('"cost":0.5') },
  { name: 'a huge cost', body: withField('"cost":1e300') },
  { name: 'a text as count', body: withField('"count":"false"') },
  { name: 'a number as secret', body: (text) => text.replace(/"secret":"[^"]*"/, '"secret":7') },
  { name: 'no secret', body: (text) => text.replace(/"secret":"[^"]*",/, '') },
  { name: 'a number as address', body: (text) => text.replace(/"address":"[^"]*"/, '"address":7') },
  { name: 'another type', headers: { 'content-type': 'text/plain' } },
  { name: 'another token', headers: { authorization: 'Bearer another' } },
  { name: 'no token', headers: { authorization: '' } },
];
