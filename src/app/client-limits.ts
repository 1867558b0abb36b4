import { readFileSync } from 'node:fs';
import { ConnectionLimit } from '../server/connections/connection-limit.ts';
import { connectionBudget } from './connection-budget.ts';
import type { ReplicaContext } from './replica-context.ts';

/** How many connections clients may have in this process. */
export interface ClientLimits {
  readonly public: ConnectionLimit;
  /** Undefined if management has no separate port. */
  readonly admin?: ConnectionLimit;
  /** Undefined if no other gateway asks for decisions. */
  readonly authorize?: ConnectionLimit;
  /** Connections to the backend for upgrades (WebSocket). */
  readonly upgrades: number;
}

/** Limits client connections to what the process's limit of open files allows. Logs a warning if that limit is too low. */
export function limitClients({ settings, platform: { log } }: ReplicaContext): ClientLimits {
  const openFiles = openFileLimit();
  const budget = connectionBudget(openFiles, settings);
  const { clients, adminClients, authorizeClients, upgrades, neededOpenFiles } = budget;
  if (neededOpenFiles !== undefined) {
    log.warn({ openFiles, neededOpenFiles }, 'the limit of open files (ulimit -n) is too low');
  }
  const limitOf = (port: 'public' | 'admin' | 'authorize', connections: number) =>
    new ConnectionLimit(connections, (pressure) => {
      const facts = { port, connections };
      switch (pressure) {
        case 'evicting':
          return log.warn(
            facts,
            'clients have nearly all the connections they may have: idle ones are closed',
          );
        case 'rejecting':
          return log.warn(facts, 'clients have all the connections they may have: new ones are closed');
        case 'none':
          return log.info(facts, 'clients may connect again');
      }
    });
  return {
    public: limitOf('public', clients),
    ...(settings.adminPort !== null && { admin: limitOf('admin', adminClients) }),
    ...(settings.authorizePort !== null && { authorize: limitOf('authorize', authorizeClients) }),
    upgrades,
  };
}

/** The most open files that Linux allows a process by default (`fs.nr_open`). */
const ELSEWHERE = 1_048_576;

/**
 * The most files and sockets that this process may have open (`ulimit -n`; Node has raised the soft limit to the hard one). If the system
 * does not show it in `/proc`, a number so high that it limits nothing.
 */
function openFileLimit(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? ELSEWHERE : Number(limit);
  } catch {
    return ELSEWHERE;
  }
}
