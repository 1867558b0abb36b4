import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { connectionBudget } from '../../src/app/connection-budget.ts';

const settings = {
  backendConnections: 256,
  adminPort: null,
  authorizePort: null,
  databaseUrl: 'postgres://db',
};

describe('the connections of a process', () => {
  it('are many where the limit of open files is the usual one', () => {
    expect(connectionBudget(524_288, settings)).toEqual({
      clients: 519_424,
      adminClients: 0,
      authorizeClients: 0,
      upgrades: 4096,
      neededOpenFiles: undefined,
    });
  });

  it('leave administrators places of their own on ADMIN_PORT', () => {
    const { adminClients, clients } = connectionBudget(4096, { ...settings, adminPort: 8081 });
    expect([adminClients, clients]).toEqual([408, 2040]);
  });

  it('leave other gateways places of their own on AUTHORIZE_PORT', () => {
    const { authorizeClients, clients } = connectionBudget(4096, { ...settings, authorizePort: 8082 });
    expect([authorizeClients, clients]).toEqual([816, 1632]);
  });

  it('are left to the backend, ops port and stores at any limit without a warning', () => {
    const budgets = fc.record({
      openFiles: fc.integer({ min: 64, max: 100_000 }),
      backendConnections: fc.integer({ min: 1, max: 65_535 }),
      adminPort: fc.constantFrom(null, 8081),
      authorizePort: fc.constantFrom(null, 8082),
      databaseUrl: fc.constantFrom(null, 'postgres://db'),
    });
    fc.assert(
      fc.property(budgets, ({ openFiles, ...given }) => {
        const budget = connectionBudget(openFiles, given);
        const { clients, adminClients, authorizeClients, upgrades, neededOpenFiles } = budget;
        expect(Math.min(clients, upgrades)).toBeGreaterThan(0);
        const all = clients + adminClients + authorizeClients + upgrades + given.backendConnections;
        if (neededOpenFiles === undefined) {
          expect(all).toBeLessThan(openFiles - 256);
        } else {
          expect(neededOpenFiles).toBeGreaterThan(openFiles);
          expect(connectionBudget(neededOpenFiles, given).neededOpenFiles).toBeUndefined();
          expect(connectionBudget(neededOpenFiles - 2, given).neededOpenFiles).toBeDefined();
        }
      }),
    );
  });
});
