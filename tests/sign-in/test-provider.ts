import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import Provider from 'oidc-provider';

export const CLIENT_ID = 'tollgate';
export const CLIENT_SECRET = 'the-secret-of-the-client-that-no-log-may-have';
/** The algorithm of the provider's signatures: the keys of others take longer to make. */
const ALGORITHM = 'ES256';

/** What the provider says of a person. */
export interface TestPerson {
  readonly name?: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly groups?: readonly string[];
}

/** How a provider differs from the usual one. */
export interface ProviderOptions {
  /** Claims come from the userinfo endpoint alone. */
  readonly claimsInUserInfo?: boolean;
  readonly withoutRefreshTokens?: boolean;
  /** Whether there is device authorization, and whether the gateway's client may use it. */
  readonly deviceFlow?: 'for the client' | 'for other clients';
  /** Addresses to which it sends browsers back. */
  readonly redirectUris: readonly string[];
}

type SigningKeys = Awaited<ReturnType<typeof generateKeyPair>>;

/** A real OpenID provider in this process. Whoever comes is signed in as `current`, without a form. */
export class TestProvider {
  /** By subject. */
  readonly people = new Map<string, TestPerson>([
    [
      'alice',
      { name: 'Alice Example', email: 'alice@example.com', email_verified: true, groups: ['admins'] },
    ],
  ]);
  /** The subject who sits in front of the browser. */
  current = 'alice';
  readonly issuer: string;
  readonly #server: Server;
  readonly #options: ProviderOptions;
  #keys: SigningKeys;
  #keyId = 'first';
  #provider: Provider | undefined;
  #isDown = false;
  /** Paths that begin so are away: it closes their connections. */
  awayPath: string | undefined;
  /** What happens while it is away, before it closes a connection. */
  whileAway: (() => PromiseLike<unknown>) | undefined;
  /** The requests that it got, as method and path. */
  readonly requests: string[] = [];

  private constructor(server: Server, options: ProviderOptions, keys: SigningKeys) {
    this.#server = server;
    this.#options = options;
    this.#keys = keys;
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(options: ProviderOptions): Promise<TestProvider> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const provider = new TestProvider(server, options, await newKeys());
    await provider.#rebuild();
    server.on('request', (req, res) => provider.#serve(req, res));
    return provider;
  }

  /** Signs with a new key from now on. What it has issued before is forgotten. */
  async rotateKeys(keyId: string): Promise<void> {
    this.#keys = await newKeys();
    this.#keyId = keyId;
    await this.#rebuild();
  }

  /** From now on it closes each connection. */
  set isDown(isDown: boolean) {
    this.#isDown = isDown;
  }

  /** An access token (RFC 9068) signed with its key. */
  accessToken(claims: JWTPayload, header: Readonly<Record<string, string>> = {}): Promise<string> {
    return new SignJWT({ iss: this.issuer, client_id: 'billing', sub: 'billing', ...claims })
      .setProtectedHeader({ alg: ALGORITHM, kid: this.#keyId, typ: 'at+jwt', ...header })
      .sign(this.#keys.privateKey);
  }

  async stop(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #serve(...[req, res]: Parameters<ReturnType<Provider['callback']>>): void {
    const isAway = this.awayPath !== undefined && req.url?.startsWith(this.awayPath);
    if (this.#isDown || isAway) {
      void Promise.resolve(this.whileAway?.()).finally(() => req.socket.destroy());
      return;
    }
    this.requests.push(`${req.method} ${req.url?.split('?', 1)[0]}`);
    if (req.url?.startsWith('/interaction/'))
      void this.#provider?.interactionFinished(req, res, { login: { accountId: this.current }, consent: {} });
    else this.#provider?.callback()(req, res);
  }

  async #rebuild(): Promise<void> {
    const jwk = await exportJWK(this.#keys.privateKey);
    const { claimsInUserInfo = false, withoutRefreshTokens = false, deviceFlow } = this.#options;
    const mayUseDevice = deviceFlow === 'for the client';
    this.#provider = quietly(
      () =>
        new Provider(this.issuer, {
          jwks: { keys: [{ ...jwk, kid: this.#keyId, alg: ALGORITHM, use: 'sig' }] },
          clients: [
            {
              client_id: CLIENT_ID,
              client_secret: CLIENT_SECRET,
              token_endpoint_auth_method: 'client_secret_post',
              grant_types: ['authorization_code', 'refresh_token', ...(mayUseDevice ? [DEVICE_GRANT] : [])],
              redirect_uris: [...this.#options.redirectUris],
              application_type: 'native',
              id_token_signed_response_alg: ALGORITHM,
            },
          ],
          cookies: { keys: ['the key of the cookies'] },
          conformIdTokenClaims: claimsInUserInfo,
          claims: {
            openid: ['sub'],
            profile: ['name'],
            email: ['email', 'email_verified'],
            groups: ['groups'],
          },
          scopes: ['openid', 'profile', 'email', 'groups'],
          features: {
            devInteractions: { enabled: false },
            deviceFlow: { enabled: deviceFlow !== undefined, ...DEVICE_PAGES },
          },
          pkce: { required: () => true },
          issueRefreshToken: async () => !withoutRefreshTokens,
          rotateRefreshToken: true,
          interactions: { url: (_ctx: unknown, { uid }: { readonly uid: string }) => `/interaction/${uid}` },
          findAccount: async (_ctx: unknown, accountId: string) =>
            this.people.has(accountId)
              ? { accountId, claims: () => ({ sub: accountId, ...this.people.get(accountId) }) }
              : undefined,
          loadExistingGrant: (ctx: GrantContext) => this.#grant(ctx),
          renderError: async (ctx: { body: unknown }, out: object) => {
            ctx.body = out;
          },
          ttl: {
            AccessToken: 3600,
            DeviceCode: 900,
            Grant: 3600,
            IdToken: 3600,
            Interaction: 600,
            RefreshToken: 86_400,
            Session: 3600,
          },
        }),
    );
    this.#provider.use(askOften);
  }

  async #grant({ oidc }: GrantContext): Promise<unknown> {
    if (this.#provider === undefined) return undefined;
    const { accountId } = oidc.session;
    const grant = new this.#provider.Grant({ clientId: oidc.client.clientId, accountId });
    grant.addOIDCScope('openid profile email groups');
    grant.addOIDCClaims(['sub', 'name', 'email', 'email_verified', 'groups']);
    await grant.save();
    return grant;
  }
}

interface GrantContext {
  readonly oidc: {
    readonly client: { readonly clientId: string };
    readonly session: { readonly accountId: string };
  };
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

/** The seconds between two questions of who waits for another device: by default five, for which tests would have to wait. */
const askOften: Parameters<Provider['use']>[0] = async (ctx, next) => {
  await next();
  if (ctx.path === '/device/auth') ctx.body = { ...(ctx.body as object), interval: 0.05 };
};

/** Pages without anything but the form. */
const DEVICE_PAGES = {
  userCodeInputSource: async (ctx: { body: unknown }, form: string) => {
    ctx.body = form;
  },
  userCodeConfirmSource: async (ctx: { body: unknown }, form: string) => {
    ctx.body = form;
  },
  successSource: async (ctx: { body: unknown }) => {
    ctx.body = 'signed in';
  },
};

/** It warns that it keeps all in memory, which is what the tests want. */
function quietly<Result>(make: () => Result): Result {
  const { warn } = console;
  console.warn = () => {};
  try {
    return make();
  } finally {
    console.warn = warn;
  }
}

function newKeys(): Promise<SigningKeys> {
  return generateKeyPair(ALGORITHM, { extractable: true });
}

/** A browser as far as redirects and cookies go. It keeps the cookies of each origin. */
export class TestBrowser {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** The cookies that it sends to an origin, as a header. */
  cookiesOf(origin: string): string {
    return [...this.#jar(origin)].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  setCookie(origin: string, name: string, value: string): void {
    this.#jar(origin).set(name, value);
  }

  async request(url: string, init: RequestInit = {}): Promise<Response> {
    const { origin } = new URL(url);
    const cookie = this.cookiesOf(origin);
    const headers = { ...(cookie !== '' && { Cookie: cookie }), ...init.headers };
    const response = await fetch(url, { redirect: 'manual', ...init, headers });
    for (const line of response.headers.getSetCookie()) this.#keep(origin, line);
    return response;
  }

  /** Follows redirects until a response is none, or until `stop` says so of the next address. Resolves with the last address. */
  async open(
    url: string,
    stop: (url: string) => boolean = () => false,
  ): Promise<{ readonly url: string; readonly response: Response }> {
    let at = url;
    for (let hops = 0; hops < 20; hops += 1) {
      const response = await this.request(at);
      const location = response.headers.get('Location');
      if (location === null) return { url: at, response };
      await response.body?.cancel();
      at = new URL(location, at).href;
      if (stop(at)) return { url: at, response };
    }
    throw new Error(`too many redirects, at last to ${at}`);
  }

  /** Opens a page and sends the forms that it and those after it have, until there is none. Resolves with the last text. */
  async submitForms(url: string): Promise<string> {
    let { url: at, response } = await this.open(url);
    for (let forms = 0; forms < 5; forms += 1) {
      const page = await response.text();
      const [, action] = /<form[^>]* action="([^"]+)"/.exec(page) ?? [];
      if (action === undefined) return page;
      const fields = [...page.matchAll(/<input[^>]* name="(\w+)" value="([^"]*)"/g)];
      const body = new URLSearchParams(fields.map(([, name = '', value = '']) => [name, value]));
      const sent = await this.request(new URL(action, at).href, { method: 'POST', body });
      const location = sent.headers.get('Location');
      if (location === null) response = sent;
      else ({ url: at, response } = await this.open(new URL(location, at).href));
    }
    throw new Error(`too many forms, at last at ${at}`);
  }

  #keep(origin: string, line: string): void {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
    const at = pair.indexOf('=');
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
    const isOver = attributes.some((attribute) => /^max-age=0$/i.test(attribute)) || value === '';
    if (isOver) this.#jar(origin).delete(name);
    else this.#jar(origin).set(name, value);
  }

  #jar(origin: string): Map<string, string> {
    const jar = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, jar);
    return jar;
  }
}
