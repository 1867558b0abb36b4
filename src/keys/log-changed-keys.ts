import type { Logger } from '../platform/logger.ts';

/** Ids of keys in a line of the log: it must fit into one atomic write of 4096 bytes, because others write to the same pipe. */
const IDS_IN_LINE = 100;

/** What changed several keys: the action, and the job or the owner of the configuration, if it was one. */
interface ChangeOfKeys {
  readonly action: string;
  readonly jobId?: string;
  readonly owner?: string;
}

/** Logs the ids of keys that were changed together. Where Postgres loses the change, operators make it again by these lines. */
export function logChangedKeys(log: Logger, change: ChangeOfKeys, keyIds: readonly string[]): void {
  for (let start = 0; start < keyIds.length; start += IDS_IN_LINE) {
    const keys = { keyIds: keyIds.slice(start, start + IDS_IN_LINE) };
    log.info({ event: 'keys_changed', ...change, ...keys }, 'consumer keys were changed');
  }
}
