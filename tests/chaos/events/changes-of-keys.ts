import { setTimeout as wait } from 'node:timers/promises';
import { Admin } from '../../support/admin.ts';
import type { World } from '../world.ts';

/** A change that was acknowledged. */
export interface AcknowledgedChange {
  readonly type: string;
  readonly keyId: string;
}

/** Changes under way and over. */
export interface Changes {
  readonly acknowledged: AcknowledgedChange[];
  /** No more changes; resolves when the one under way is over. */
  stop(): Promise<void>;
}

/** Between two changes. Milliseconds. */
const PAUSE_MS = 100;

/** An administrator who makes, changes and deletes keys at each replica in turn. */
export function startChanges({ replicas }: Pick<World, 'replicas'>): Changes {
  const acknowledged: AcknowledgedChange[] = [];
  let isStopped = false;
  let turn = 0;
  /** Resolves with the body of a response of 2xx. What happened otherwise is not known. */
  const change = async (method: string, path: string, body?: object) => {
    turn += 1;
    const admin = new Admin(replicas[turn % replicas.length]?.url ?? '');
    const response = await admin.call(method, path, body).catch(() => undefined);
    await wait(PAUSE_MS);
    return response !== undefined && response.status < 300 ? response.body : undefined;
  };
  const makeAll = async (): Promise<void> => {
    while (!isStopped) {
      const made = await change('POST', '/consumer-api-key/create', { name: `changed ${turn}` });
      if (made === undefined) continue;
      const path = `/consumer-api-key/${made.id}`;
      const note = (type: string) => acknowledged.push({ type: `tollgate.key.${type}`, keyId: made.id });
      note('created');
      if ((await change('PATCH', path, { tags: ['changed'] })) !== undefined) note('updated');
      if ((await change('DELETE', path)) !== undefined) note('deleted');
    }
  };
  const over = makeAll();
  return {
    acknowledged,
    stop: () => {
      isStopped = true;
      return over;
    },
  };
}
