import { request } from 'undici';

/** A request as a page's script makes it, with `mode: 'cors'` and `credentials: 'omit'`. */
export interface PageRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What the script gets to see. */
export interface PageResponse {
  readonly status: number;
  /** Names in lower case, only those that may be read. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A page of an origin: holds the responses to the rules of the Fetch standard as a browser does. */
export class BrowserPage {
  readonly #origin: string;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Rejects with the reason where a browser would say "network error". */
  async fetch(url: string, { method = 'GET', headers = {} }: PageRequest = {}): Promise<PageResponse> {
    const unsafe = Object.keys(headers)
      .map((name) => name.toLowerCase())
      .filter((name) => !SAFE_REQUEST_FIELDS.has(name))
      .toSorted();
    if (!SAFE_METHODS.has(method) || unsafe.length > 0) await this.#preflight(url, method, unsafe);
    const response = await this.#send(url, method, headers);
    this.#check(response.headers);
    const exposed = listOf(response.headers, 'access-control-expose-headers');
    return {
      ...response,
      headers: Object.fromEntries(
        Object.entries(response.headers).filter(
          ([name]) => SAFE_RESPONSE_FIELDS.has(name) || exposed.includes('*') || exposed.includes(name),
        ),
      ),
    };
  }

  /** Section 4.8, "CORS-preflight fetch". */
  async #preflight(url: string, method: string, unsafe: readonly string[]): Promise<void> {
    const { status, headers } = await this.#send(url, 'OPTIONS', {
      accept: '*/*',
      'access-control-request-method': method,
      ...(unsafe.length > 0 && { 'access-control-request-headers': unsafe.join(',') }),
    });
    this.#check(headers);
    if (status < 200 || status > 299) throw new Error(`the preflight got ${status}`);
    const methods = listOf(headers, 'access-control-allow-methods', (text) => text);
    if (!methods.includes(method) && !SAFE_METHODS.has(method) && !methods.includes('*'))
      throw new Error(`the method ${method} is not allowed`);
    const names = listOf(headers, 'access-control-allow-headers');
    for (const name of unsafe) {
      // `*` does not cover Authorization.
      if (!names.includes(name) && (name === 'authorization' || !names.includes('*')))
        throw new Error(`the field ${name} is not allowed`);
    }
  }

  /** Section 4.10, "CORS check", without credentials. */
  #check(headers: Readonly<Record<string, string>>): void {
    const allowed = headers['access-control-allow-origin'];
    if (allowed !== '*' && allowed !== this.#origin) throw new Error(`the origin is not allowed: ${allowed}`);
  }

  async #send(url: string, method: string, headers: Readonly<Record<string, string>>): Promise<PageResponse> {
    const response = await request(url, {
      method: method as 'GET',
      headers: { ...headers, origin: this.#origin },
    });
    // The standard reads a repeated field as a list.
    const combined = Object.entries(response.headers).map(([name, value]) => [
      name,
      [value].flat().join(', '),
    ]);
    return {
      status: response.statusCode,
      headers: Object.fromEntries(combined),
      body: await response.body.text(),
    };
  }
}

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST']);
const SAFE_REQUEST_FIELDS: ReadonlySet<string> = new Set(['accept', 'accept-language', 'content-language']);
const SAFE_RESPONSE_FIELDS: ReadonlySet<string> = new Set([
  'cache-control',
  'content-language',
  'content-length',
  'content-type',
  'expires',
  'last-modified',
  'pragma',
]);

function listOf(
  headers: Readonly<Record<string, string>>,
  name: string,
  normal = (text: string) => text.toLowerCase(),
): string[] {
  return (headers[name] ?? '').split(',').map((part) => normal(part.trim()));
}
