import { createServer } from 'node:http';
import type { ListenerParts } from '../../src/app/open-listeners.ts';
import { parseScopesMap } from '../../src/sign-in/scopes-map.ts';
import { startManagement, type TestManagement } from '../management/start-management.ts';
import type { TestSettings } from '../support/in-process-gateway.ts';
import { listenOnLoopback } from '../support/listen-on-loopback.ts';
import {
  CLIENT_ID,
  CLIENT_SECRET,
  type ProviderOptions,
  TestBrowser,
  TestProvider,
} from './test-provider.ts';

export const AUDIENCE = 'https://gateway.example.com';
const MAP = parseScopesMap(
  JSON.stringify({
    admins: ['all'],
    support: ['support'],
    'team a': { scopes: ['keys:read', 'keys:write', 'webhooks:read'], onlyTags: ['team:a'] },
    'team b': { scopes: ['keys:read', 'keys:write', 'webhooks:read'], onlyTags: ['team:b'] },
  }),
);

/** Two replicas with one database, and a provider. */
export interface TestSignIn {
  readonly provider: TestProvider;
  readonly management: TestManagement;
  /** The origin of the console, which the first replica serves. */
  readonly origin: string;
  /** The other replica, at another port. */
  readonly otherOrigin: string;
  /** Signs `person` in, in a new browser. */
  signIn(person?: string): Promise<TestBrowser>;
  /** A request of the console in a browser, sent to the first replica unless `to` names the other. */
  call(browser: TestBrowser, path: string, init?: RequestInit & { readonly to?: string }): Promise<Response>;
  stop(): Promise<void>;
}

/** How this gateway differs from the usual one. */
interface SignInOptions extends Omit<ProviderOptions, 'redirectUris'> {
  readonly settings?: TestSettings;
  /** Of a built console. Without it tests look at where browsers are sent. */
  readonly consoleDirectory?: string;
}

/** Starts sign-in with a provider. Clocks of gateways stand still at the present time. */
export async function startSignIn({
  settings,
  consoleDirectory = import.meta.dirname,
  ...options
}: SignInOptions = {}): Promise<TestSignIn> {
  const [first, second] = [await listener(), await listener()];
  const { origin } = first;
  const redirectUris = [`${origin}/tollgate/sign-in/callback`, 'http://127.0.0.1/callback'];
  const provider = await TestProvider.start({ ...options, redirectUris });
  const common = {
    startMs: Date.now(),
    consoleDirectory,
    settings: {
      oidcIssuer: new URL(provider.issuer),
      ...{ oidcClientId: CLIENT_ID, oidcClientSecret: CLIENT_SECRET, publicAdminUrl: origin },
      ...{ oidcScopes: 'openid profile email groups', oidcScopesMap: MAP, oidcAudience: AUDIENCE },
      ...settings,
    },
  };
  const management = await startManagement(common);
  const replica = await startManagement({ ...common, records: management.records });
  first.serve(management.app);
  second.serve(replica.app);
  return {
    ...{ provider, management, origin, otherOrigin: second.origin },
    async signIn(person = 'alice') {
      const browser = new TestBrowser();
      provider.current = person;
      await browser.open(`${origin}/tollgate/sign-in`, (url) => url.startsWith(`${origin}/tollgate/console`));
      return browser;
    },
    call(browser, path, { to = origin, ...init } = {}) {
      const headers = {
        Cookie: browser.cookiesOf(origin),
        Origin: origin,
        'Tollgate-Console': '1',
        ...init.headers,
      };
      return fetch(`${to}${path}`, { ...init, headers });
    },
    async stop() {
      first.close();
      second.close();
      await replica.stop();
      await management.stop();
      await provider.stop();
      const logged = [...management.lines, ...replica.lines].join('');
      if (/tgs_[0-9A-Za-z]{36}/.test(logged) || logged.includes(CLIENT_SECRET))
        throw new Error(`a secret was logged:\n${logged}`);
    },
  };
}

/** A port that a replica can serve once it is built: its address is one of its settings. */
async function listener() {
  let app: ListenerParts['management'] | undefined;
  const server = createServer((req, res) => app?.(req, res));
  const port = await listenOnLoopback(server);
  return {
    origin: `http://127.0.0.1:${port}`,
    serve: (served: ListenerParts['management']) => {
      app = served;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
