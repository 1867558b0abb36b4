import { SOCKETS_OF_A_PORT } from '../server/listening-sockets.ts';
import type { Settings } from '../settings/settings.ts';
import { OPS_LIMITS } from './ops/ops-server.ts';

/** How many connections of each kind a process may have. */
export interface ConnectionBudget {
  /** Client connections on `PORT`. */
  readonly clients: number;
  /** Client connections on `ADMIN_PORT`. */
  readonly adminClients: number;
  /** Connections of other gateways on `AUTHORIZE_PORT`. */
  readonly authorizeClients: number;
  /** Connections to the backend for upgrades. */
  readonly upgrades: number;
  /** If clients get less than a quarter of the open files: the lowest limit at which they get it. Otherwise undefined. */
  readonly neededOpenFiles: number | undefined;
}

/** For the log, pipes, the event loop, Redis (a cluster of dozens of servers) and the 14 connections to Postgres. */
const OTHER_FILES = 128;
/** The embedded Postgres keeps each table's files open. */
const EMBEDDED_FILES = 640;
const MOST_UPGRADES = 4096;
const MOST_ADMIN_CLIENTS = 1024;
const MOST_AUTHORIZE_CLIENTS = 4096;
/** The least part of the limit that is left to clients. */
const CLIENTS_SHARE = 1 / 4;

/**
 * Divides the open files that a process may have, so that clients can't take the connections that the backend, the stores and the
 * ops port need.
 */
export function connectionBudget(
  openFiles: number,
  {
    backendConnections,
    adminPort,
    authorizePort,
    databaseUrl,
  }: Pick<Settings, 'backendConnections' | 'adminPort' | 'authorizePort' | 'databaseUrl'>,
): ConnectionBudget {
  const ports = 2 + Number(adminPort !== null) + Number(authorizePort !== null);
  const reserved =
    OPS_LIMITS.connections +
    ports * SOCKETS_OF_A_PORT +
    backendConnections +
    OTHER_FILES +
    (databaseUrl === null ? EMBEDDED_FILES : 0);
  const least = Math.floor(openFiles * CLIENTS_SHARE);
  const left = Math.max(openFiles - reserved, least);
  const upgrades = Math.min(MOST_UPGRADES, Math.floor(left / 4));
  const adminClients = adminPort === null ? 0 : Math.min(MOST_ADMIN_CLIENTS, Math.floor(left / 8));
  const authorizeClients =
    authorizePort === null ? 0 : Math.min(MOST_AUTHORIZE_CLIENTS, Math.floor(left / 4));
  return {
    clients: left - upgrades - adminClients - authorizeClients,
    adminClients,
    authorizeClients,
    upgrades,
    neededOpenFiles: openFiles - reserved < least ? Math.ceil(reserved / (1 - CLIENTS_SHARE)) : undefined,
  };
}
