import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createWebhookSecret } from '../../src/events/delivery/signature.ts';
import { SecretRedactor, withoutSecrets } from '../../src/keys/secrets/secret-redactor.ts';
import { systemRandom } from '../../src/platform/random.ts';
import { createSecret } from '../../src/secrets/secret-format.ts';

const ROOT = 'root/token+of=the~tests-0123456789abcdef';
const screen = new SecretRedactor({ rootTokens: [ROOT], keyPrefix: 'tg' });

describe('the screen for secrets', () => {
  it('finds every secret and root token, whatever surrounds it, in any encoding', () => {
    const surroundings = fc.stringMatching(/^[A-Za-z0-9/._~%20-]{0,20}$/);
    const encodings = fc.constantFrom(
      (text: string) => text,
      encodeURIComponent,
      percentEncoded,
      (text: string) => encodeURIComponent(percentEncoded(text)),
      (text: string) => encodeURIComponent(encodeURIComponent(percentEncoded(text))),
    );
    fc.assert(
      fc.property(surroundings, surroundings, encodings, fc.boolean(), (before, after, encode, isRoot) => {
        const secret = isRoot ? ROOT : createSecret('tg', systemRandom);
        const masked = screen.masked(`/${before}/${encode(secret)}${after}`);
        expect(decodedThreeTimes(masked)).not.toContain(secret);
        expect(screen.holds(`${before}${secret}${after}`)).toBe(true);
      }),
    );
  });

  it('masks a secret of this gateway that has lost its checksum', () => {
    const secret = createSecret('tg', systemRandom);
    expect(screen.masked(`/a/${secret.slice(0, -6)}/b`)).toBe('/a/***/b');
    expect(screen.masked(`/a/${percentEncoded(secret.slice(0, -1))}`)).toBe('/a/***');
  });

  it('masks secrets of webhooks, which are base64', () => {
    for (let index = 0; index < 100; index += 1) {
      const secret = createWebhookSecret(systemRandom);
      expect(withoutSecrets(`(${secret})`)).toBe('(***)');
      expect(screen.masked(`/a?b=${encodeURIComponent(secret)}&c`)).toBe('/a?b=***&c');
    }
  });

  it('masks a secret whose prefix looks like the end of another one', () => {
    const secret = createSecret('tg', systemRandom);
    const masked = screen.masked(`/id_${'0'.repeat(34)}${secret}/b`);
    expect(masked).toMatch(/^[0/*]+b$/);
    expect(withoutSecrets(`id_${'0'.repeat(34)}${secret}`)).toMatch(/^[0*]+$/);
  });

  it('masks every credential of a path, each of them encoded another number of times', () => {
    const [first, second] = [createSecret('tg', systemRandom), createSecret('tg', systemRandom)];
    const masked = screen.masked(`/${first}/${encodeURIComponent(percentEncoded(second))}`);
    expect(masked).toBe('/***/***');
  });

  it.each([
    '/',
    '/orders/order_550e8400e29b41d4a716446655440000',
    '/v1/users/2f1c0a9e-5b0d-4c3e-8f3a-0c6a4f0e9b11',
    '/blobs/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    '/consumer-api-key/key_01JD6Z3V8Q5N4M2K7P9R0T1W2X',
    '/caf%C3%A9/a%2Fb',
    '/%ff',
  ])('leaves %s as it is', (path) => {
    expect(screen.masked(path)).toBe(path);
  });
});

function percentEncoded(text: string): string {
  return [...text].map((each) => `%${each.charCodeAt(0).toString(16).padStart(2, '0')}`).join('');
}

function decodedThreeTimes(text: string): string {
  return decodedLoosely(decodedLoosely(decodedLoosely(text)));
}

/** As any reader of the log might decode it. */
function decodedLoosely(text: string): string {
  return text.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}
