import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type NameResolverOptions, nameResolver } from '../../src/events/delivery/resolve-name.ts';
import { until } from '../support/until.ts';

const NAME_ERROR = 3;

let server: Socket;
let directory: string;
let hostsFile: string;
/** Names that the system was asked for. */
let lookedUp: string[];
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'tollgate-hosts-'));
  hostsFile = join(directory, 'hosts');
  await writeFile(
    hostsFile,
    '127.0.0.1 localhost\n192.0.2.7 other Hooks.Example # name.example\n2001:db8::7 hooks.example\n',
  );
});
afterAll(() => rm(directory, { recursive: true }));
beforeEach(async () => {
  lookedUp = [];
  server = createSocket('udp4');
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(() => void server.close());

/** Its queries may take longer than a busy machine stands still, where nothing else is said. */
function resolver({ lookUp, ...options }: NameResolverOptions = {}) {
  return nameResolver({
    servers: [`127.0.0.1:${server.address().port}`],
    hostsFile,
    queryTimeoutMs: 10_000,
    lookUp: (name) => {
      lookedUp.push(name);
      return lookUp?.(name) ?? Promise.resolve([{ address: '192.0.2.1', family: 4 }]);
    },
    ...options,
  });
}

/** Responds to queries for IPv4 addresses with one, or with an error to all; to no others where it `drops` them. */
function respond(address: readonly number[] | undefined, { drops = false } = {}): void {
  server.on('message', (query, { port }) => {
    const end = query.indexOf(0, 12) + 5;
    const isIpv4 = query[end - 3] === 1;
    if (drops && !isIpv4) return;
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(0x8180 | (address === undefined ? NAME_ERROR : 0), 2);
    head.writeUInt16BE(1, 4);
    const records =
      address !== undefined && isIpv4 ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address] : [];
    head.writeUInt16BE(records.length === 0 ? 0 : 1, 6);
    server.send(Buffer.concat([head, query.subarray(12, end), Buffer.from(records)]), port, '127.0.0.1');
  });
}

describe('the name of an endpoint', () => {
  it('is resolved by DNS without a thread', async () => {
    respond([192, 0, 2, 9]);
    expect(await resolver()('name.example')).toEqual([{ address: '192.0.2.9', family: 4 }]);
    expect(lookedUp).toEqual([]);
  });

  it('has the addresses of one family where the name server drops queries for the other', async () => {
    respond([192, 0, 2, 9], { drops: true });
    const resolve = resolver({ queryTimeoutMs: 600_000 });
    expect(await resolve('name.example')).toEqual([{ address: '192.0.2.9', family: 4 }]);
    expect(lookedUp).toEqual([]);
  });

  it('has the addresses of the hosts file, if it is there', async () => {
    respond([192, 0, 2, 9]);
    const addresses = (await resolver()('hooks.example')).map(({ address }) => address);
    expect(addresses).toEqual(['192.0.2.7', '2001:db8::7']);
  });

  it('that DNS does not know is looked up by the system, one name at a time, in turns', async () => {
    respond(undefined);
    const ends: (() => void)[] = [];
    const resolve = resolver({ lookUp: () => new Promise((done) => ends.push(() => done([]))) });
    const all = Promise.all(['a.example', 'a.example', 'b.example'].map(resolve));
    for (let count = 1; count <= 3; count += 1) {
      await until(async () => ends.length === count);
      expect(lookedUp).toHaveLength(count);
      ends.at(-1)?.();
    }
    expect(await all).toEqual([[], [], []]);
  });

  it('that only the system knows has all its addresses there', async () => {
    respond(undefined);
    const servers = [`127.0.0.1:${server.address().port}`];
    const resolve = nameResolver({ servers, hostsFile: join(directory, 'none'), queryTimeoutMs: 10_000 });
    const [address] = await resolve('localhost');
    expect(['127.0.0.1', '::1']).toContain(address?.address);
  });

  it('whose name server never responds occupies no thread, and times out', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `name-${index}.example`);
    const results = await Promise.allSettled(names.map(resolver({ queryTimeoutMs: 100 })));
    expect(results.every((result) => result.status === 'rejected' && result.reason.code === 'ETIMEOUT')).toBe(
      true,
    );
    expect(lookedUp).toEqual([]);
  });
});
