import type { KeySet } from '../cases.ts';
import type { BenchKey } from './candidate.ts';
import { ROOT_TOKEN } from './tollgate.ts';

/** The keys of all cases; the last one has used up its limit with its first request. */
export type BenchKeys = Readonly<Record<KeySet, readonly BenchKey[]>> & { readonly all: readonly BenchKey[] };

const MANY = 10_000;
const AT_ONCE = 16;
const AMPLE = 1_000_000_000;

/** Makes the keys through the management interface: their plan is the default one, which gets an ample limit for a day. */
export async function makeKeys(port: number): Promise<BenchKeys> {
  await manage(port, ['PATCH', '/rate-limit/default'], { limit: AMPLE, period: 'day' });
  const keys: BenchKey[] = [];
  const makeSome = async () => {
    while (keys.length < MANY) {
      const at = keys.length;
      keys.push({ id: '', secret: '', limit: AMPLE });
      const { id, secret } = await makeKey(port, `bench ${at}`);
      keys[at] = { id, secret, limit: AMPLE };
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, makeSome));
  const { id, secret } = await makeKey(port, 'spent');
  const spent: BenchKey = { id, secret, limit: 1 };
  await manage(port, ['POST', '/rate-limit/create'], {
    rateLimitId: 'one',
    description: '',
    limit: 1,
    period: 'day',
  });
  await manage(port, ['POST', '/api-keys/apply-rate-limit'], {
    consumerApiKeyId: spent.id,
    rateLimitId: 'one',
  });
  const limited = [keys.slice(100, 200), keys.slice(200, 300)] as const;
  await bindAll(port, limited[0], 'three-limits', 2);
  await bindAll(port, limited[1], 'eight-limits', 7);
  return {
    hundred: keys.slice(0, 100),
    three_limits: limited[0],
    eight_limits: limited[1],
    one: keys.slice(0, 1),
    spent: [spent],
    ten_thousand: keys,
    all: [...keys, spent],
  };
}

/** Binds the keys to a plan with so many limits beside its own. */
async function bindAll(
  port: number,
  keys: readonly BenchKey[],
  rateLimitId: string,
  additional: number,
): Promise<void> {
  const additionalLimits = ADDITIONAL_PERIODS.slice(0, additional).map((period, index) => ({
    limitId: `limit-${index}`,
    limit: AMPLE,
    period,
  }));
  const plan = { rateLimitId, description: '', limit: AMPLE, period: 'day', additionalLimits };
  await manage(port, ['POST', '/rate-limit/create'], plan);
  for (const { id } of keys) {
    await manage(port, ['POST', '/api-keys/apply-rate-limit'], { consumerApiKeyId: id, rateLimitId });
  }
}

const ADDITIONAL_PERIODS = ['second', 'hour', 'minute', '2 days', 'week', 'month', 'year'];

function makeKey(port: number, name: string): Promise<{ readonly id: string; readonly secret: string }> {
  return manage(port, ['POST', '/consumer-api-key/create'], { name });
}

/** Calls the management interface. Throws for a status of 400 and more. */
export async function manage<Body = unknown>(
  port: number,
  [method, path]: readonly [method: string, path: string],
  body?: unknown,
): Promise<Body> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${ROOT_TOKEN}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Body;
}
