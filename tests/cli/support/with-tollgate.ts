import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import type { Admin } from '../../support/admin.ts';
import { type Fleet, startInProcessFleet } from '../../support/fleet.ts';
import { Administrator } from './run-tollgate.ts';

/** A gateway, and what a test of the command needs beside it. */
export interface Stage {
  readonly tollgate: Administrator;
  /** Of the gateway. */
  readonly url: string;
  /** The same gateway, without the command. */
  readonly admin: Admin;
  /** For files of the tests. */
  readonly directory: string;
}

/** Gives the tests of the calling file one gateway, with these settings, and removes it after them. */
export function withTollgate(settings: Readonly<Record<string, string>> = {}): Stage {
  const stage: Partial<{ -readonly [Part in keyof Stage]: Stage[Part] }> = {};
  let fleet: Fleet | undefined;
  beforeAll(async () => {
    stage.directory = await mkdtemp(join(tmpdir(), 'tollgate-cli-'));
    fleet = await startInProcessFleet(1, settings);
    stage.url = fleet.replicas[0]?.url ?? '';
    stage.admin = fleet.admin;
    stage.tollgate = new Administrator(stage.url);
  });
  afterAll(async () => {
    await fleet?.stop();
    if (stage.directory !== undefined) await rm(stage.directory, { recursive: true, force: true });
  });
  return stage as Stage;
}
