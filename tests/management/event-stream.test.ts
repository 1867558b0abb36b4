import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { sql } from 'kysely';
import { PostgresEventReader } from '../../src/storage/postgres/events/postgres-event-reader.ts';
import { until } from '../support/until.ts';
import { ROOT_TOKEN, startManagement, type TestManagement } from './start-management.ts';

let management: TestManagement;
let url: string;
beforeAll(async () => {
  management = await startManagement();
  url = `http://127.0.0.1:${await management.listen()}`;
});
afterAll(() => management.stop());

interface Message {
  readonly id: string;
  readonly event: { readonly type: string; readonly subject: string };
}

/** The secret of a token whose streams take no other's places. */
async function ownSecret(): Promise<string> {
  return (await management.createToken({ scopes: ['webhooks:read', 'keys:read'] })).secret;
}

/** An open stream. */
class Stream {
  readonly status: number;
  readonly headers: Headers;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  readonly #abort: AbortController;
  #text = '';

  private constructor(response: Response, abort: AbortController) {
    this.status = response.status;
    this.headers = response.headers;
    this.#reader = response.body?.getReader();
    this.#abort = abort;
  }

  static async open(query = '', secret = ROOT_TOKEN, headers: Record<string, string> = {}): Promise<Stream> {
    const abort = new AbortController();
    const response = await fetch(`${url}/tollgate/events${query}`, {
      headers: { authorization: `Bearer ${secret}`, ...headers },
      signal: abort.signal,
    });
    return new Stream(response, abort);
  }

  /** The next message; undefined if the stream has ended. */
  async next(): Promise<Message | undefined> {
    for (;;) {
      const end = this.#text.indexOf('\n\n');
      if (end >= 0) {
        const block = this.#text.slice(0, end);
        this.#text = this.#text.slice(end + 2);
        const found = /^id: (\d+)\ndata: (.*)$/.exec(block);
        if (found) return { id: found[1] ?? '', event: JSON.parse(found[2] ?? '') };
        continue;
      }
      const { done, value } = (await this.#reader?.read()) ?? { done: true, value: undefined };
      if (done) return undefined;
      this.#text += new TextDecoder().decode(value);
    }
  }

  close(): void {
    this.#abort.abort();
  }
}

describe('the stream of events', () => {
  it('has what happens from now on, and goes on after Last-Event-ID', async () => {
    const before = await management.createKey();
    const stream = await Stream.open('?type=tollgate.plan.*,tollgate.key.*');
    expect([stream.status, stream.headers.get('content-type')]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
    ]);
    const [first, second] = [await management.createKey(), await management.createKey()];
    const [one, two] = [await stream.next(), await stream.next()];
    expect([one, two].map((message) => message?.event.subject)).toEqual([first.id, second.id]);
    expect([first.id, second.id]).not.toContain(before.id);
    stream.close();
    const third = await management.createKey();
    const again = await Stream.open('?type=tollgate.key.*', ROOT_TOKEN, { 'last-event-id': one?.id ?? '' });
    const resumed = [await again.next(), await again.next()];
    expect(resumed.map((message) => message?.event.subject)).toEqual([second.id, third.id]);
    again.close();
  });

  it('asks proxies to pass it on as it comes, neither kept nor compressed', async () => {
    const stream = await Stream.open();
    stream.close();
    expect([stream.headers.get('x-accel-buffering'), stream.headers.get('cache-control')]).toEqual([
      'no',
      'no-store, no-transform',
    ]);
  });

  it('has only the types and tags that the token may hear', async () => {
    const { secret } = await management.createToken({
      ...{ name: 'hears keys', scopes: ['webhooks:read', 'keys:read'], onlyTags: ['eu'] },
    });
    const stream = await Stream.open('', secret);
    await management.createToken({ name: 'unheard', onlyTags: ['eu'] });
    await management.createKey('unheard');
    const heard = { name: 'heard', tags: ['eu'] };
    const { body } = await management.send('post', '/consumer-api-key/create', heard).expect(201);
    expect((await stream.next())?.event).toMatchObject({ type: 'tollgate.key.created', subject: body.id });
    stream.close();
  });

  it('is not opened for a type that the token may not hear, or that is unknown', async () => {
    const { secret } = await management.createToken({ scopes: ['webhooks:read', 'keys:read'] });
    expect((await Stream.open('?type=tollgate.admin_token.*', secret)).status).toBe(403);
    expect((await Stream.open('?type=tollgate.nothing')).status).toBe(400);
    expect((await Stream.open('?type=tollgate.key.created,tollgate.nothing')).status).toBe(400);
    expect((await Stream.open('?type=tollgate.key.created,tollgate.admin_token.*', secret)).status).toBe(403);
    await management.bare('get', '/tollgate/events').expect(401);
  });

  it('ends with the token', async () => {
    const token = await management.createToken({ scopes: ['webhooks:read', 'keys:read'] });
    const stream = await Stream.open('', token.secret);
    await management.send('delete', `/tollgate/admin-token/${token.adminTokenId}`).expect(200);
    await management.createKey('after the end');
    expect(await stream.next()).toBeUndefined();
  });

  it('of a token that was lowered while the request was authenticated ends before its first event', async () => {
    const token = await management.createToken({ scopes: ['webhooks:read', 'keys:read'] });
    const { adminTokens } = management.records;
    const found = jest.spyOn(adminTokens, 'findByLookup').mockImplementationOnce(async (...lookups) => {
      found.mockRestore();
      const before = await adminTokens.findByLookup(...lookups);
      const lowered = { scopes: ['webhooks:read'] };
      await management.send('patch', `/tollgate/admin-token/${token.adminTokenId}`, lowered).expect(200);
      return before;
    });
    const stream = await Stream.open('', token.secret);
    await management.createKey('after it was lowered');
    expect([stream.status, await stream.next()]).toEqual([200, undefined]);
  });

  it('ends with the previous secret of a token for those who present it', async () => {
    const scopes = ['webhooks:read', 'keys:read'];
    const { adminTokenId, secret } = await management.createToken({ scopes });
    const path = `/tollgate/admin-token/${adminTokenId}/rotate`;
    const rotated = await management.send('post', path, { graceSeconds: 60 }).expect(200);
    const [previous, present] = [await Stream.open('', secret), await Stream.open('', rotated.body.secret)];
    management.clock.advance(Date.parse(rotated.body.previousValidUntil) - management.clock.nowMs());
    const { id } = await management.createKey('after the grace period');
    expect(await previous.next()).toBeUndefined();
    expect((await present.next())?.event.subject).toBe(id);
    present.close();
  });

  it('is one of 16 for a token, leaves others room, and makes room once it is closed', async () => {
    const { secret } = await management.createToken({ scopes: ['webhooks:read', 'keys:read'] });
    const streams = [];
    for (let opened = 0; opened < 16; opened += 1) streams.push(await Stream.open('', secret));
    const further = await Stream.open('', secret);
    const ofOther = await Stream.open();
    expect([further.status, ofOther.status]).toEqual([503, 200]);
    for (const stream of [...streams, ofOther]) stream.close();
    await until(async () => {
      const again = await Stream.open('', secret);
      again.close();
      return again.status === 200;
    });
  });

  it('writes nothing when streams are opened and ended in a loop', async () => {
    const version = async () => {
      const end = management.records.db.selectFrom('audit_log_ends').select(sql<string>`ctid::text`.as('at'));
      return (await end.executeTakeFirstOrThrow()).at;
    };
    const secret = await ownSecret();
    (await Stream.open('', secret)).close();
    const before = await version();
    const statuses = new Set<number>();
    for (let opened = 0; opened < 30; opened += 1) {
      const stream = await Stream.open('', secret);
      statuses.add(stream.status);
      stream.close();
    }
    expect(statuses).toContain(200);
    expect(await version()).toBe(before);
  });

  it('is opened while an audited change is under way', async () => {
    const secret = await ownSecret();
    (await Stream.open('', secret)).close();
    await management.records.db.transaction().execute(async (trx) => {
      await trx.selectFrom('audit_log_ends').select('last_event').forUpdate().execute();
      const stream = await Stream.open('', secret);
      expect(stream.status).toBe(200);
      stream.close();
    });
  });

  it('keeps no place for clients that have left before it was opened', async () => {
    const secret = await ownSecret();
    const left = new Set<Promise<unknown>>();
    const server = createServer((req, res) => {
      left.add(once(res, 'close'));
      management.app(req, res);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const abort = new AbortController();
    const opening = jest.spyOn(PostgresEventReader.prototype, 'follow').mockImplementation(async () => {
      if (opening.mock.calls.length === 16) abort.abort();
      await Promise.all(left);
      return { lastEvent: 0, isNoted: false };
    });
    const { port } = server.address() as AddressInfo;
    const headers = { authorization: `Bearer ${secret}` };
    const requests = Array.from({ length: 16 }, () =>
      fetch(`http://127.0.0.1:${port}/tollgate/events`, { headers, signal: abort.signal }),
    );
    await Promise.allSettled(requests);
    await Promise.all(left);
    opening.mockRestore();
    await until(async () => {
      const again = await Stream.open('', secret);
      again.close();
      return again.status === 200;
    });
    server.close();
  });

  it.each([
    ['half a body', `Content-Length: 1000000\r\n\r\n${'x'.repeat(300_000)}`],
    ['chunks that never end', `Transfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(50_000)}`],
    ['more requests behind it', `\r\n${'GET /tollgate/events HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000)}`],
  ])('keeps no place for a client that has left, which sent %s', async (_what, rest) => {
    const secret = await ownSecret();
    const { port } = new URL(url);
    const clients = Array.from({ length: 16 }, () => connect(Number(port), '127.0.0.1'));
    const head = `GET /tollgate/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${secret}\r\n`;
    await Promise.all(
      clients.map(async (client) => {
        client.on('error', () => {}).write(head + rest);
        await once(client, 'readable');
      }),
    );
    expect((await Stream.open('', secret)).status).toBe(503);
    for (const client of clients) client.destroy();
    await until(async () => {
      const again = await Stream.open('', secret);
      again.close();
      return again.status === 200;
    });
  });

  it('begins now after a Last-Event-ID that is not the number of an event', async () => {
    await management.createKey('before');
    const secret = await ownSecret();
    const ids = ['-1', '1e1', '0x1', '1.5', '1, 2', 'aud_1', 'null', '٣', '9'.repeat(15), '9'.repeat(4000)];
    const streams = await Promise.all(
      ids.map((lastEventId) => {
        const headers = { 'last-event-id': Buffer.from(lastEventId).toString('latin1') };
        return Stream.open('?type=tollgate.key.*', secret, headers);
      }),
    );
    const { id } = await management.createKey('after');
    const heard = await Promise.all(streams.map((stream) => stream.next()));
    expect(heard.map((message) => message?.event.subject)).toEqual(ids.map(() => id));
    for (const stream of streams) stream.close();
  });

  it('is rejected for too many types, repeated or unknown parameters, with a short message', async () => {
    const queries = [
      `type=${Array.from({ length: 1000 }, (_, index) => `a${index}`)}`,
      `type=${'a'.repeat(7000)}`,
      `type=`,
      `type=tollgate.key.created${'&type=tollgate.key.created'.repeat(200)}`,
      `subject=a${'&subject=b'.repeat(500)}`,
      Array.from({ length: 500 }, (_, index) => `a${index}=b`).join('&'),
    ];
    for (const query of queries) {
      const { body } = await management.send('get', `/tollgate/events?${query}`).expect(400);
      expect(body.error.length).toBeLessThan(1000);
    }
  });

  it('is rejected for a subject that Postgres can not be asked for', async () => {
    for (const subject of ['%00', 'key_1%00'])
      await management.send('get', `/tollgate/events?subject=${subject}`).expect(400);
  });

  it('has each event once, however often a type is repeated', async () => {
    const repeated = `?type=${'tollgate.key.*,'.repeat(300)}tollgate.key.created`;
    const stream = await Stream.open(repeated, await ownSecret());
    const made = [await management.createKey(), await management.createKey()];
    const heard = [await stream.next(), await stream.next()];
    expect(heard.map((message) => message?.event.subject)).toEqual(made.map(({ id }) => id));
    stream.close();
  });
});
