import { SCOPES, type Scope } from '../../../src/permissions/scopes.ts';
import { CLIENT_ID, CLIENT_SECRET, TestBrowser, TestProvider } from '../../sign-in/test-provider.ts';
import { type Fleet, startInProcessFleet } from '../../support/fleet.ts';
import { freePort } from '../../support/free-port.ts';
import type { DocumentedOperation } from './documented-operations.ts';

/** How a principal of the management interface authenticates. */
export const CREDENTIAL_KINDS = ['admin token', 'session', 'access token'] as const;
export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

/** The tag of those who see some keys only. */
export const OWN_TAG = 'eu';

export interface Granted {
  readonly scopes: readonly Scope[];
  /** Only what has the tag `OWN_TAG`. */
  readonly isLimited?: boolean;
}

export type Headers = Readonly<Record<string, string>>;

export interface OperationResponse {
  readonly status: number;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
  readonly body: any;
}

const AUDIENCE = 'https://gateway.example.com';

/** A gateway with all of its ports, an identity provider, and principals of every kind. */
export class CredentialWorld {
  readonly fleet: Fleet;
  readonly #origin: string;
  readonly #provider: TestProvider;
  readonly #made = new Map<string, Promise<Headers>>();
  #people = 0;

  private constructor(fleet: Fleet, origin: string, provider: TestProvider) {
    this.fleet = fleet;
    this.#origin = origin;
    this.#provider = provider;
  }

  static async start(): Promise<CredentialWorld> {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const provider = await TestProvider.start({ redirectUris: [`${origin}/tollgate/sign-in/callback`] });
    const fleet = await startInProcessFleet(1, {
      ...{ PORT: `${port}`, AUTHORIZE_PORT: '0', PUBLIC_ADMIN_URL: origin, PUBLIC_URL: origin },
      ...{ OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: CLIENT_ID, OIDC_CLIENT_SECRET: CLIENT_SECRET },
      ...{
        OIDC_SCOPES: 'openid profile email groups',
        OIDC_SCOPES_MAP: scopesMap(),
        OIDC_AUDIENCE: AUDIENCE,
      },
      ...{ WEBHOOK_ALLOW_HTTP: 'true', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' },
    });
    return new CredentialWorld(fleet, origin, provider);
  }

  /** The headers of a principal with exactly these scopes. */
  headersOf(kind: CredentialKind, granted: Granted): Promise<Headers> {
    const name = `${kind} ${granted.isLimited} ${granted.scopes}`;
    const made = this.#made.get(name) ?? this.#headersOf(kind, granted);
    this.#made.set(name, made);
    return made;
  }

  /** Sends a request for an operation. `path` has values for its parameters. */
  async send(
    { operationId, method }: Pick<DocumentedOperation, 'operationId' | 'method'>,
    path: string,
    { headers = {}, body }: { readonly headers?: Headers; readonly body?: object | undefined } = {},
  ): Promise<OperationResponse> {
    const [replica] = this.fleet.replicas;
    const base = operationId === 'verifySecret' ? replica?.authorizeUrl : replica?.url;
    const hasBody = method !== 'GET' && body !== undefined;
    const response = await fetch(`${base}${path}`, {
      method,
      headers: { ...headers, ...(hasBody && { 'Content-Type': 'application/json' }) },
      ...(hasBody && { body: JSON.stringify(body) }),
    });
    const isStream = response.headers.get('Content-Type')?.startsWith('text/event-stream') === true;
    if (isStream) await response.body?.cancel();
    const text = isStream ? '' : await response.text();
    return { status: response.status, text, body: text.startsWith('{') ? JSON.parse(text) : undefined };
  }

  /** Sends a request with the root token and resolves with the body of its response. Rejects if it has failed. */
  async must(method: string, path: string, body?: object): Promise<OperationResponse['body']> {
    const response = await this.fleet.admin.call(method, path, body);
    if (response.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(response.body)}`);
    return response.body;
  }

  async stop(): Promise<void> {
    await this.fleet.stop();
    await this.#provider.stop();
  }

  async #headersOf(kind: CredentialKind, { scopes, isLimited = false }: Granted): Promise<Headers> {
    if (kind === 'admin token') {
      const fields = { name: 'a token', scopes, ...(isLimited && { onlyTags: [OWN_TAG] }) };
      const { body } = await this.fleet.admin.call('POST', '/tollgate/admin-token/create', fields);
      return { Authorization: `Bearer ${body.secret}` };
    }
    const groups = scopes.map((scope) => groupOf(scope, isLimited));
    return kind === 'session' ? this.#signIn(groups) : this.#accessToken(groups);
  }

  async #signIn(groups: readonly string[]): Promise<Headers> {
    this.#people += 1;
    const person = `person-${this.#people}`;
    this.#provider.people.set(person, { name: 'A person', groups });
    this.#provider.current = person;
    const browser = new TestBrowser();
    const console = `${this.#origin}/tollgate/console`;
    await browser.open(`${this.#origin}/tollgate/sign-in`, (url) => url.startsWith(console));
    return { Cookie: browser.cookiesOf(this.#origin), Origin: this.#origin, 'Tollgate-Console': '1' };
  }

  async #accessToken(groups: readonly string[]): Promise<Headers> {
    const nowS = Math.floor(Date.now() / 1000);
    const claims = { aud: AUDIENCE, iat: nowS, exp: nowS + 600, groups };
    return { Authorization: `Bearer ${await this.#provider.accessToken(claims)}` };
  }
}

function groupOf(scope: Scope, isLimited: boolean): string {
  return isLimited ? `${scope} of ${OWN_TAG}` : scope;
}

/** A group for each scope, and one for each that is limited to the tag. */
function scopesMap(): string {
  const groups = SCOPES.flatMap((scope) => [
    [groupOf(scope, false), [scope]],
    [groupOf(scope, true), { scopes: [scope], onlyTags: [OWN_TAG] }],
  ]);
  return JSON.stringify(Object.fromEntries(groups));
}
