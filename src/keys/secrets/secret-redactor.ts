import { isWellFormedSecret } from '../../secrets/secret-format.ts';

/**
 * A secret of any gateway within a text, from its underscore on: a search for prefixes would try each character of a long path as the
 * beginning of one. The checksum is not verified, so that a mistyped secret is redacted as well. Those of webhooks are base64.
 */
const SECRETS = '_(?<=whsec_)[0-9A-Za-z+/_%-]{24,}={0,2}|_(?<=[A-Za-z][A-Za-z0-9]{0,15}_)[0-9A-Za-z]{36}';
/** A secret with its prefix, in a short text. */
const NAMED_SECRET = /whsec_[0-9A-Za-z+/_-]{24,}|[A-Za-z][A-Za-z0-9]{0,15}_[0-9A-Za-z]{36}/g;
const PREFIX_AT_END = /[A-Za-z][A-Za-z0-9]*$/;
const LONGEST_PREFIX = 16;
const ANY_SECRET = new RegExp(SECRETS, 'g');
/** Fewest digits by which a secret of this gateway is recognised: it may have lost its checksum, or a part of it. */
const DIGITS_WITHOUT_CHECKSUM = 30;
const MASK = '***';
/** Proxies, frameworks and clients may each have percent-encoded a path once more. */
const MAX_DECODINGS = 3;

/** What a redactor knows of the credentials that it looks for. */
export interface SecretRedactorOptions {
  readonly rootTokens: readonly string[];
  /** `KEY_PREFIX`: a letter and at most 15 letters and digits. */
  readonly keyPrefix: string;
}

/**
 * Finds credentials where a client should not have put them: in a path, or in the id that it gave its request. Secrets are recognised by
 * the form in which gateways make them, so that those of other gateways and of deleted keys are found too; a secret from outside may have
 * another form.
 */
export class SecretRedactor {
  readonly #rootTokens: readonly string[];
  readonly #secrets: RegExp;

  constructor({ rootTokens, keyPrefix }: SecretRedactorOptions) {
    this.#rootTokens = rootTokens;
    const own = `_(?<=${keyPrefix}_)[0-9A-Za-z]{${DIGITS_WITHOUT_CHECKSUM},}`;
    this.#secrets = new RegExp(`${SECRETS}|${own}`, 'g');
  }

  /** Whether a credential is in the text as it stands. */
  holds(text: string): boolean {
    return text.search(this.#secrets) >= 0 || this.#rootTokens.some((token) => text.includes(token));
  }

  /**
   * A path that may be stored or logged: asterisks replace the credentials in it. If they are percent-encoded, up to three times, the path
   * is decoded until they show.
   */
  masked(path: string): string {
    let written = path;
    let text = path;
    for (let decodings = 0; ; decodings += 1) {
      if (this.holds(text)) {
        text = this.#replaced(text);
        written = text;
      }
      if (decodings === MAX_DECODINGS || !text.includes('%')) return written;
      text = decoded(text);
    }
  }

  #replaced(text: string): string {
    return this.#rootTokens.reduce(
      (masked, token) => masked.replaceAll(token, MASK),
      withMask(text, this.#secrets),
    );
  }
}

/** The text with asterisks for what has the form of a secret of any gateway. */
export function withoutSecrets(text: string): string {
  return withMask(text, ANY_SECRET);
}

/**
 * Why a text may not be the name of something, which events and the audit log show as it is; undefined if it may. The checksum is verified,
 * because a name may have a hash of 40 digits in it.
 */
export function secretFault(text: string): string | undefined {
  const named = text.match(NAMED_SECRET) ?? [];
  return named.some((secret) => secret.startsWith('whsec_') || isWellFormedSecret(secret))
    ? 'this one has a secret in it, which events and the audit log would show: choose another, and rotate the secret'
    : undefined;
}

/** The text with a mask in place of each secret and its prefix. */
function withMask(text: string, secrets: RegExp): string {
  let masked = '';
  let at = 0;
  for (const { 0: found, index } of text.matchAll(secrets)) {
    const prefixFrom = Math.max(at, index - LONGEST_PREFIX);
    masked += text.slice(at, prefixFrom) + text.slice(prefixFrom, index).replace(PREFIX_AT_END, '') + MASK;
    at = index + found.length;
  }
  return masked + text.slice(at);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    // Not UTF-8. Only ASCII is decoded, because credentials consist of ASCII.
    return path.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
  }
}
