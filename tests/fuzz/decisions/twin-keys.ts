import type { Admin } from '../../support/admin.ts';
import { until } from '../../support/until.ts';
import { ALLOWED_NETWORK, KEY_KINDS, type KeyKind, WAYS, type Way } from './original.ts';

/** A key, by its id and its secret. */
interface Key {
  readonly id: string;
  readonly secret: string;
}

/** The keys of one sequence: one of each kind for each way, which differ in nothing else. */
export type TwinKeys = Readonly<Record<KeyKind, Readonly<Record<Way, Key>>>>;

const PLAN = 'fuzz';

/** Makes the plan of all keys. Some sequences use it up. */
export async function makePlan(admin: Admin): Promise<void> {
  await admin.makePlan(PLAN, 5, 'month');
  await must(admin, `/rate-limit/${PLAN}`, {
    costs: [
      { path: '/free', cost: 0 },
      { methods: ['POST'], path: '/costly', cost: 3 },
    ],
  });
}

export async function makeTwinKeys(admin: Admin): Promise<TwinKeys> {
  const make = async (kind: KeyKind): Promise<readonly [KeyKind, Record<Way, Key>]> => {
    const keys = await Promise.all(
      WAYS.map(async (way) => {
        const key = await admin.makeKey(`${kind}, ${way}`, PLAN);
        if (kind === 'restricted') await must(admin, `/consumer-api-key/${key.id}`, RESTRICTED);
        if (kind === 'disabled') await must(admin, `/consumer-api-key/${key.id}`, { enabled: false });
        return [way, key] as const;
      }),
    );
    return [kind, Object.fromEntries(keys) as Record<Way, Key>];
  };
  return Object.fromEntries(await Promise.all(KEY_KINDS.map(make))) as TwinKeys;
}

/** What is wrong with the statistics: keys that were used in the same way must have the same. */
export async function judgeUsage(admin: Admin, keys: readonly TwinKeys[]): Promise<readonly string[]> {
  const findings: string[] = [];
  for (const twins of keys) {
    for (const kind of KEY_KINDS) {
      const read = async (): Promise<readonly string[]> =>
        Promise.all(WAYS.map(async (way) => totalsOf((await admin.detail(twins[kind][way].id)).usage)));
      const isEqual = async (): Promise<boolean> => new Set(await read()).size === 1;
      await until(isEqual, { timeoutMs: 20_000 }).catch(() => {});
      const totals = await read();
      if (new Set(totals).size > 1)
        findings.push(`keys "${kind}" were counted differently: ${totals.join('; ')}`);
    }
  }
  return findings;
}

interface Totals {
  readonly totalRequests: number;
  readonly successfulRequests: number;
}

function totalsOf({ totalRequests, successfulRequests }: Totals): string {
  return `${successfulRequests} of ${totalRequests}`;
}

const RESTRICTED = { allowedIps: [ALLOWED_NETWORK] };

async function must(admin: Admin, path: string, changes: unknown): Promise<void> {
  const { status, body } = await admin.call('PATCH', path, changes);
  if (status !== 200) throw new Error(`PATCH ${path}: ${status} ${JSON.stringify(body)}`);
}
