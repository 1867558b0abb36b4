import { withoutSessionCookies } from '../http/credentials/session-cookie.ts';
import { headerLine } from '../http/node-internals.ts';
import type { KeyEntry } from '../keys/cache/key-entry.ts';
import { customerOf } from '../limiter/request-limits.ts';
import type { Step } from '../proxy/exchange.ts';

/**
 * The last step: tells the gateway that it may forward the request, with the fields that it passes on to its backend. Where the call has
 * cookies, also without settings for sign-in, they are among them but for those of the console: some gateways drop each field that a
 * response may have and does not.
 */
export function allow({ customerIdHeader }: { readonly customerIdHeader: string }): Step {
  const linesOf = new WeakMap<KeyEntry, string>();
  return (exchange) => {
    const { entry, req, secret } = exchange;
    if (entry === undefined) return;
    let lines = linesOf.get(entry);
    if (lines === undefined) {
      lines = keyLines(entry);
      linesOf.set(entry, lines);
    }
    const customerId = customerOf(req.headers[customerIdHeader]);
    if (req.headers.cookie !== undefined)
      lines += headerLine('Cookie', withoutSessionCookies(req.headers.cookie));
    lines += `x-api-key: ${secret}\r\nTollgate-Customer-Id: ${customerId}\r\n`;
    exchange.respondEmpty({ status: 200, outcome: 'allowed', headers: [], lines });
  };
}

function keyLines({ snapshot: { keyId, plan, owner } }: KeyEntry): string {
  const externalId = owner?.externalId ?? null;
  return (
    headerLine('Tollgate-Key-Id', keyId) +
    (plan === null ? '' : headerLine('Tollgate-Plan', plan.id)) +
    (externalId === null ? '' : headerLine('Tollgate-External-Id', inVisibleAscii(externalId)))
  );
}

/** Percent-encodes what a field can't hold unambiguously. An administrator may choose any text, line ends included. */
function inVisibleAscii(text: string): string {
  return text.replaceAll(/[^\x21-\x24\x26-\x7e]+/g, encodeURIComponent);
}
