import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, type RenderResult, render } from '@testing-library/react';
import type { ReactNode } from 'react';
import { createManagementClient } from '../../../../src/client/management-client.ts';
import { ApiContext, type Scope } from '../../../../src/console/api/api-context.tsx';
import { type ConnectEvents, EventFeed } from '../../../../src/console/api/event-feed.ts';
import { createQueryClient } from '../../../../src/console/api/query-client.ts';
import { SessionStore } from '../../../../src/console/api/session-store.ts';
import './patience.ts';

interface Reply {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ReceivedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A management interface that says what a test wants, over a real socket. */
export class ScriptedGateway {
  readonly requests: ReceivedRequest[] = [];
  #respond: (request: ReceivedRequest) => Reply | Promise<Reply> = () => ({ status: 200, body: {} });
  readonly #server: Server;

  constructor() {
    this.#server = createServer(async (req, res) => {
      const { method = '', url = '', headers: sent } = req;
      const request = { method, url, headers: sent, body: await text(req).catch(() => '') };
      this.requests.push(request);
      const { status, body, headers } = await this.#respond(request);
      const always = { 'content-type': 'application/json', 'x-request-id': 'scripted' };
      res.writeHead(status, { ...always, ...headers }).end(JSON.stringify(body));
    });
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
  }

  /** From now on. */
  reply(status: number, body: object, headers: Readonly<Record<string, string>> = {}): void {
    this.respond(() => ({ status, body, headers }));
  }

  /** To each request what `respond` says, from now on. */
  respond(respond: (request: ReceivedRequest) => Reply | Promise<Reply>): void {
    this.#respond = respond;
  }

  /** Draws a part of a page that asks this gateway. */
  render(scopes: readonly Scope[], part: ReactNode): RenderResult {
    return renderSignedIn(scopes, part, this.url);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }
}

/** For the tests of a file: a gateway without requests before each, and no page after it. */
export function withScriptedGateway(): ScriptedGateway {
  const gateway = new ScriptedGateway();
  beforeAll(() => gateway.start());
  beforeEach(() => {
    gateway.requests.length = 0;
  });
  afterEach(cleanup);
  afterAll(() => gateway.stop());
  return gateway;
}

/** Draws a part of a page for a token of these scopes. By default no server is at its address. */
export function renderSignedIn(
  scopes: readonly Scope[],
  part: ReactNode,
  url = 'http://127.0.0.1:1',
): RenderResult {
  return render(
    <SignedIn url={url} scopes={scopes}>
      {part}
    </SignedIn>,
  );
}

/** What is around every page of a person who is signed in with a token of these scopes. */
export function SignedIn(props: {
  readonly url: string;
  readonly scopes: readonly Scope[];
  /** Opens streams of events; without it they stay silent. */
  readonly connectEvents?: ConnectEvents;
  readonly children: ReactNode;
}) {
  const { url, scopes, connectEvents = silent, children } = props;
  const api = {
    client: createManagementClient({ url, token: 'a token' }),
    feed: new EventFeed(connectEvents),
    adoptSecret: <Rotated,>(rotation: Promise<Rotated>) => rotation,
    session: new SessionStore(window.sessionStorage),
    whoami: {
      type: 'token' as const,
      adminTokenId: 'admin_1',
      ...{ sessionId: null, subject: null, email: null },
      name: 'tester',
      scopes: [...scopes],
      onlyTags: [],
      expiresAt: null,
      version: '0.0.0',
      settings: {
        keyPrefix: 'tg',
        secretReveal: 'always' as const,
        defaultPlanId: 'default',
        pathCase: 'insensitive' as const,
        customerIdHeader: 'x-customer-id',
        usageRetentionDays: 90,
        usageDailyRetentionDays: 400,
        auditRetentionDays: 365,
        publicPort: null,
      },
    },
  };
  return (
    <QueryClientProvider client={createQueryClient()}>
      <ApiContext value={api}>{children}</ApiContext>
    </QueryClientProvider>
  );
}

/** No event, and no end. */
const silent: ConnectEvents = () => new Promise(() => undefined);
