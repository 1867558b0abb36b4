import { Agent, get, type IncomingMessage } from 'node:http';
import { Session } from 'node:inspector/promises';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { expect, it } from '@jest/globals';
import { startInProcessFleet } from '../support/fleet.ts';

const SOURCE = pathToFileURL(resolve(import.meta.dirname, '../../src/')).href;
/** A request whose code is in more files is hard to hold in mind. */
const MOST_FILES = 50;

/** The files of the source of which a function ran meanwhile. */
async function filesRunBy(session: Session, act: () => Promise<void>): Promise<ReadonlySet<string>> {
  await session.post('Profiler.takePreciseCoverage');
  await act();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const run = result.filter(
    ({ url, functions }) =>
      url.startsWith(SOURCE) &&
      functions.some(({ functionName, ranges: [range] }) => functionName !== '' && (range?.count ?? 0) > 0),
  );
  return new Set(run.map(({ url }) => url.slice(SOURCE.length + 1)));
}

it(`runs the code of at most ${MOST_FILES} files for a warm request`, async () => {
  const fleet = await startInProcessFleet(1);
  const session = new Session();
  const agent = new Agent({ keepAlive: true });
  try {
    const { secret } = await fleet.admin.makeKey('warm');
    const headers = { authorization: `Bearer ${secret}` };
    const request = async () => {
      const url = `${fleet.replicas[0]?.url}/x`;
      const res = await new Promise<IncomingMessage>((received, failed) =>
        get(url, { agent, headers }, received).on('error', failed),
      );
      expect([res.statusCode, await text(res)]).toEqual([200, 'ok']);
    };
    session.connect();
    await session.post('Profiler.enable');
    await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    for (let count = 0; count < 20; count += 1) await request();
    // What runs with each of several requests: a timer may run with one of them.
    let files = await filesRunBy(session, request);
    for (let count = 0; count < 9; count += 1) files = files.intersection(await filesRunBy(session, request));
    await session.post('Profiler.stopPreciseCoverage');
    expect(files.size).toBeGreaterThan(30);
    expect(files.size > MOST_FILES ? [...files].toSorted() : []).toEqual([]);
  } finally {
    session.disconnect();
    agent.destroy();
    await fleet.stop();
  }
});
