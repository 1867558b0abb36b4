import { manage } from '../setup/keys.ts';

/** The plan that 100 000 keys are bound to, the one that 50 000 keys are moved from, and the one that they are moved to. */
export const PLANS = { many: 'many', from: 'moved-from', to: 'moved-to' } as const;

const AMPLE = 1_000_000_000;
const IMPORTED_AT_ONCE = 500;
const IMPORTS_AT_ONCE = 4;
const BOUND_TO_MANY = 100_000;
const BOUND_TO_MOVED = 50_000;

/** The secret of a key by its number. */
export function secretOf(number: number): string {
  return `secret-of-the-scale-bench-${String(number).padStart(12, '0')}`;
}

/** Makes the plans, all with an ample limit for a day. */
export async function makePlans(port: number): Promise<void> {
  await manage(port, ['PATCH', '/rate-limit/default'], { limit: AMPLE, period: 'day' });
  for (const rateLimitId of Object.values(PLANS)) {
    const plan = { rateLimitId, description: '', limit: AMPLE, period: 'day' };
    await manage(port, ['POST', '/rate-limit/create'], plan);
  }
}

/**
 * Imports the keys with numbers `from` up to below `to`, as an owner of many customers would. The first 100 000 are bound to one plan and the
 * next 50 000 to another; in a smaller bench of `total` keys as large a share of them.
 */
export async function importKeys(port: number, from: number, to: number, total: number): Promise<void> {
  const many = Math.min(BOUND_TO_MANY, total / 10);
  const moved = many + Math.min(BOUND_TO_MOVED, total / 20);
  let next = from;
  const importSome = async () => {
    while (next < to) {
      const start = next;
      next = Math.min(to, start + IMPORTED_AT_ONCE);
      const keys = Array.from({ length: next - start }, (_, index) => {
        const number = start + index;
        const rateLimitId = number < many ? PLANS.many : number < moved ? PLANS.from : null;
        const tags = number % 5 === 0 ? ['eu', 'paid'] : [];
        const name = `Customer ${number}`;
        return { name, secret: secretOf(number), externalId: `customer-${number}`, tags, rateLimitId };
      });
      await manage(port, ['POST', '/api-keys/import'], { keys });
    }
  };
  await Promise.all(Array.from({ length: IMPORTS_AT_ONCE }, importSome));
}
