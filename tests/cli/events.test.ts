import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { withReceiver } from '../events/support/with-receiver.ts';
import { endChild } from '../support/end-child.ts';
import { fakeTimeouts } from '../support/fake-timeouts.ts';
import { freePort } from '../support/free-port.ts';
import { until } from '../support/until.ts';
import { runInProcess } from './support/run-in-process.ts';
import { runTollgate } from './support/run-tollgate.ts';
import { withTollgate } from './support/with-tollgate.ts';

const stage = withTollgate();
const receiver = withReceiver();
const running: ChildProcess[] = [];
afterEach(async () => {
  jest.useRealTimers();
  for (const child of running.splice(0)) await endChild(child);
});

/** A command that follows the stream of the gateway, until the test ends. */
class Following {
  readonly child: ChildProcess;
  stdout = '';
  stderr = '';

  constructor(...words: readonly string[]) {
    this.child = spawn(process.execPath, [resolve('bin/tollgate.js'), ...words], {
      env: { PATH: process.env.PATH ?? '', ...stage.tollgate.environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    running.push(this.child);
    this.child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      this.stdout += chunk;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      this.stderr += chunk;
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
  get lines(): readonly any[] {
    return this.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  }

  /** Makes keys until so many are shown. */
  async shows(count: number): Promise<void> {
    await until(async () => {
      await stage.admin.makeKey('shown');
      return this.lines.length >= count;
    });
  }
}

describe('tollgate events --follow', () => {
  it('prints each event of the type as a line of JSON, until a signal ends it', async () => {
    const following = new Following('events', '--follow', '--type', 'tollgate.key.*');
    await following.shows(2);
    const { lines } = following;
    expect(new Set(lines.map(({ type }) => type))).toEqual(new Set(['tollgate.key.created']));
    expect(new Set(lines.map(({ id }) => id)).size).toBe(lines.length);
    const ended = once(following.child, 'close');
    following.child.kill('SIGINT');
    expect(await ended).toEqual([null, 'SIGINT']);
    expect(following.stderr).toBe('');
  });

  it('prints only the events of a subject', async () => {
    const { id } = await stage.admin.makeKey('the subject');
    const following = new Following('events', '--follow', '--subject', id);
    await until(async () => {
      await stage.admin.makeKey('another subject');
      await stage.admin.call('PATCH', `/consumer-api-key/${id}`, { name: `at ${following.lines.length}` });
      await stage.admin.call('PATCH', `/consumer-api-key/${id}`, { name: 'the subject' });
      return following.lines.length >= 2;
    });
    expect(new Set(following.lines.map(({ subject }) => subject))).toEqual(new Set([id]));
  });

  it('ends with 0 when the reader of its output goes away', async () => {
    const following = new Following('events', '--follow');
    await following.shows(1);
    following.child.stdout?.destroy();
    const ended = once(following.child, 'exit');
    await until(async () => {
      await stage.admin.makeKey('unread');
      return following.child.exitCode !== null;
    });
    expect(await ended).toEqual([0, null]);
    expect(following.stderr).toBe('');
  });

  it('goes on after the last id when a connection breaks, even before the first event', async () => {
    const connections: (string | undefined)[] = [];
    const responses: readonly ((res: ServerResponse) => void)[] = [
      (res) => res.write(': open\nid: 7\n\n', () => res.destroy()),
      (res) => res.writeHead(503).end(),
      // The last message is cut off, and comes again.
      (res) => res.write('id: 8\ndata: {"n":8}\n\nid: 9\ndata: {"n":9}\n', () => res.destroy()),
      (res) => res.end('id: 9\ndata: {"n":9}\n\n: heartbeat\nid: 12\n\n'),
      (res) => res.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"No more."}'),
    ];
    const { code, stdout, stderr } = await withServer(
      (req, res) => {
        res.setHeader('content-type', 'text/event-stream');
        responses[connections.push(req.headers['last-event-id'] as string | undefined) - 1]?.(res);
      },
      // A process: what it writes just before it fails must not be lost with its end.
      (url) =>
        runTollgate(['events', '--follow'], { environment: { TOLLGATE_URL: url, TOLLGATE_TOKEN: 't' } }),
    );
    expect(connections).toEqual([undefined, '7', '7', '8', '12']);
    expect(stdout).toBe('{"n":8}\n{"n":9}\n');
    expect([code, stderr.split('\n').at(-2)]).toEqual([3, 'No more.']);
  });

  it('fails with 75 and says why where nothing comes for longer than the time between heartbeats', async () => {
    fakeTimeouts();
    const ended = await withServer(
      (_req, res) => {
        // As a proxy that holds the first chunks back.
        res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        setImmediate(() => {
          jest.advanceTimersByTime(45_000);
          // The gateways of this file need theirs.
          jest.useRealTimers();
        });
      },
      (url) => follow({ TOLLGATE_URL: url, TOLLGATE_TOKEN: 't' }, '--retries', '0'),
    );
    expect(ended).toEqual({
      ...{ code: 75, stdout: '' },
      stderr: 'The gateway has sent nothing for 45 s. A proxy in front of it may hold the stream back.\n',
    });
  });

  it('fails with 75 without a gateway, and with 1 at a server that is none', async () => {
    const environment = { TOLLGATE_URL: `http://127.0.0.1:${await freePort()}`, TOLLGATE_TOKEN: 't' };
    expect((await follow(environment, '--retries', '1')).code).toBe(75);
    const ended = await withServer(
      (_req, res) => res.end('<html>'),
      (url) => follow({ ...environment, TOLLGATE_URL: url }),
    );
    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toContain("not one of Tollgate's management interface");
  });
});

function follow(environment: Readonly<Record<string, string>>, ...words: readonly string[]) {
  return runInProcess(['events', '--follow', ...words], environment);
}

async function withServer<Result>(
  respond: (req: IncomingMessage, res: ServerResponse) => void,
  work: (url: string) => Promise<Result>,
): Promise<Result> {
  const server = createServer(respond).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('tollgate webhooks listen', () => {
  it('sends events to a port of this machine, signed with the secret that it shows', async () => {
    const words = ['--forward-to', String(receiver.port), '--type', 'tollgate.key.created'];
    const listening = new Following('webhooks', 'listen', ...words, '-o', 'ndjson');
    await listening.shows(1);
    const [shown] = listening.lines;
    expect(shown).toMatchObject({
      responseStatus: 204,
      fault: null,
      event: { type: 'tollgate.key.created' },
    });
    // Servers in development may listen on either address of that name, and on one alone.
    expect(listening.stderr).toContain(`Events are sent to http://localhost:${receiver.port}/`);
    const [secret = ''] = /whsec_\S+/.exec(listening.stderr) ?? [];
    const [request] = await receiver.received(1);
    const { body = '', headers = {} } = request ?? {};
    expect(new Webhook(secret).verify(body, headers)).toEqual(shown.event);
    expect(headers).toMatchObject({
      'content-type': 'application/cloudevents+json',
      'webhook-id': shown.event.id,
    });
  });

  it('writes CSV with one header', async () => {
    const listening = new Following('webhooks', 'listen', '-o', 'csv');
    await until(async () => {
      await stage.admin.makeKey('in CSV');
      return listening.stdout.split('\n').length > 3;
    });
    const [header, ...rows] = listening.stdout.split('\n');
    expect(header).toBe('time,type,subject,response,ms,id');
    expect(rows).not.toContain(header);
  });

  it('goes on where the receiver does not respond, and says why', async () => {
    const port = String(await freePort());
    const listening = new Following('webhooks', 'listen', '--forward-to', port, '-o', 'ndjson');
    await listening.shows(2);
    expect(listening.lines[0]).toMatchObject({ responseStatus: null, fault: 'ECONNREFUSED' });
  });

  it('skips an interim response of the receiver, as a delivery of the gateway does', async () => {
    await withServer(
      (_req, res) => {
        res.writeContinue();
        res.writeHead(202).end();
      },
      async (url) => {
        const listening = new Following('webhooks', 'listen', '--forward-to', url, '-o', 'ndjson');
        await listening.shows(1);
        expect(listening.lines[0]).toMatchObject({ responseStatus: 202, fault: null });
      },
    );
  });

  it.each(['0', '65536', 'ftp://localhost', 'http://user:password@localhost'])(
    'does not send to %s',
    async (target) => {
      const ended = await stage.tollgate.run(['webhooks', 'listen', '--forward-to', target]);
      expect(ended).toMatchObject({ code: 64, stderr: expect.stringContaining('a port or a URL') });
    },
  );
});
