/** Most entries of a key's `allowedOrigins`. */
export const MAX_ALLOWED_ORIGINS = 20;
/** Longest origin: a scheme, a host name of 253 characters and a port. */
const MAX_LENGTH = 280;
const ANY_LABEL = '://*.';
/** Replaces a first label of `*` while the entry is parsed as a URL. */
const SOME_LABEL = '://any.';

/**
 * Origins of web pages, as browsers write them: `https://app.example.com`. `https://*.example.com` stands for each name directly below
 * `example.com`, as in a certificate.
 */
export class OriginList {
  readonly #origins: ReadonlySet<string>;
  readonly #levels: ReadonlySet<string>;

  /** Each entry must be one that `isOriginEntry` accepts. */
  constructor(entries: readonly string[]) {
    this.#origins = new Set(entries.filter((entry) => !entry.includes(ANY_LABEL)));
    this.#levels = new Set(entries.filter((entry) => entry.includes(ANY_LABEL)));
  }

  includes(origin: string): boolean {
    if (this.#origins.has(origin)) return true;
    return this.#levels.size > 0 && entriesFor(origin).some((entry) => this.#levels.has(entry));
  }
}

/**
 * The entries that allow an origin: the origin itself, and the one with `*` as its first label. None for text that is not the origin of a
 * web page.
 */
export function entriesFor(origin: string): readonly string[] {
  if (origin.includes('*') || !isOriginEntry(origin)) return [];
  return [origin, origin.replace(/:\/\/[^.]+\./, ANY_LABEL)];
}

/** Whether a text is an origin with the scheme `http` or `https`, exactly as browsers write it, or one with `*` as its first label. */
export function isOriginEntry(text: string): boolean {
  return text.length <= MAX_LENGTH && writtenOrigin(text) === text;
}

/**
 * The form in which browsers write an origin: in lower case and ASCII, without default port and path. Undefined if the text can't be an
 * entry.
 */
export function writtenOrigin(text: string): string | undefined {
  const url = URL.parse(text.replace(ANY_LABEL, SOME_LABEL));
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) return undefined;
  if (url.hostname.includes('*')) return undefined;
  if (!text.includes(ANY_LABEL)) return url.origin;
  // `*.com` would be any web page.
  const [, name = '', ...rest] = url.hostname.split('.');
  return name !== '' && rest.length > 0 ? url.origin.replace(SOME_LABEL, ANY_LABEL) : undefined;
}
