import { type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { type Command, InvalidArgumentError } from 'commander';
import { responseTo } from '../../../events/delivery/send-delivery.ts';
import { createWebhookSecret, webhookSignature } from '../../../events/delivery/signature.ts';
import { systemClock } from '../../../platform/clock.ts';
import { systemRandom } from '../../../platform/random.ts';
import { systemCodeOf } from '../../../platform/system-code.ts';
import { followEvents } from '../../api/follow-events.ts';
import { managed, type SessionOptions } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Listing } from '../../output/columns.ts';
import type { Terminal } from '../../terminal.ts';
import { type EventOptions, eventQueryOf, selectingEvents } from '../events.ts';

interface ListenOptions extends EventOptions, SessionOptions {
  readonly forwardTo?: URL;
}

/** An event, and how the local receiver responded to it. */
interface Forwarded {
  readonly event: {
    readonly id: string;
    readonly type: string;
    readonly subject: string;
    readonly time: string;
  };
  /** Null if it was not forwarded, or there was no response. */
  readonly responseStatus: number | null;
  /** Why there was no response; null if there was one, and if it was not forwarded. */
  readonly fault: string | null;
  readonly durationMs: number | null;
}

/** As long as a delivery of the gateway may take. */
const FORWARD_TIMEOUT_MS = 15_000;

/** Declares the command with which a receiver is developed on a machine that the gateway can't reach. */
export function declareListen(webhooks: Command, terminal: Terminal): void {
  const listen = selectingEvents(
    webhooks
      .command('listen')
      .summary('Forward events to a receiver in development')
      .description(
        'Follows the stream of events and sends each to a receiver on this machine, signed like the requests of a webhook, until Ctrl-C. The gateway needs no way to this machine, and no webhook is made. Nothing is sent twice. The secret is that of TOLLGATE_WEBHOOK_SECRET, otherwise a new one, which is shown on standard error.',
      )
      .option('--forward-to <port>', 'a port of this machine, or a URL', localUrl),
  ).addHelpText(
    'after',
    `
Examples:
  tollgate webhooks listen --forward-to 3000
  tollgate webhooks listen --forward-to http://localhost:3000/hooks --type 'tollgate.key.*'`,
  );
  managed<ListenOptions>(listen, terminal, async (session, _words, options) => {
    const { output } = session;
    const { forwardTo } = options;
    const secret = forwardTo === undefined ? undefined : secretOf(terminal);
    if (forwardTo !== undefined && secret !== undefined)
      output.note(`Events are sent to ${forwardTo.href}, signed with the development secret ${secret}`);
    output.csvHeader(FORWARDED);
    for await (const body of followEvents(session, eventQueryOf(options), options)) {
      const outcome = forwardTo && secret ? await forward(body, forwardTo, secret) : NOT_FORWARDED;
      output.record(FORWARDED, { event: JSON.parse(body), ...outcome });
    }
  });
}

type Outcome = Omit<Forwarded, 'event'>;

const NOT_FORWARDED: Outcome = { responseStatus: null, fault: null, durationMs: null };

/** Sends an event as a webhook does. Never rejects. */
async function forward(body: string, url: URL, secret: string): Promise<Outcome> {
  const webhookId: string = JSON.parse(body).id;
  const timestamp = Math.floor(systemClock.nowMs() / 1000);
  const startedMs = systemClock.monotonicMs();
  const passedMs = (): number => Math.round(systemClock.monotonicMs() - startedMs);
  const deadline = AbortSignal.timeout(FORWARD_TIMEOUT_MS);
  const headers = {
    'content-type': 'application/cloudevents+json',
    'user-agent': 'tollgate',
    'webhook-id': webhookId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': webhookSignature([secret], { webhookId, timestamp, body }),
  };
  try {
    const responseStatus = await statusOf(url, { headers, signal: deadline }, body);
    return { responseStatus, fault: null, durationMs: passedMs() };
  } catch (error) {
    const fault = deadline.aborted ? 'timeout' : systemCodeOf(error);
    return { responseStatus: null, fault, durationMs: passedMs() };
  }
}

/** The status of the final response. `fetch` would fail at an interim one that was not requested, which a delivery of the gateway skips. */
async function statusOf(url: URL, options: RequestOptions, body: string): Promise<number | null> {
  const send = url.protocol === 'https:' ? requestHttps : requestHttp;
  const request = send(url, { ...options, method: 'POST', agent: false });
  try {
    return (await responseTo(request.end(body))).statusCode ?? null;
  } finally {
    request.destroy();
  }
}

function secretOf({ environment }: Terminal): string {
  const given = environment.TOLLGATE_WEBHOOK_SECRET;
  if (!given) return createWebhookSecret(systemRandom);
  if (/^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/.test(given)) return given;
  throw new CommandFault(
    'usage',
    'TOLLGATE_WEBHOOK_SECRET must be a secret of a webhook: whsec_ and base64.',
  );
}

/** A port number, or an address of HTTP. */
function localUrl(text: string): URL {
  const isPort = /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) < 65_536;
  const url = URL.parse(isPort ? `http://localhost:${text}` : text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '')
    return url;
  throw new InvalidArgumentError('It must be a port or a URL like http://localhost:3000/hooks.');
}

const FORWARDED: Listing<Forwarded> = {
  columns: [
    { name: 'time', toCell: ({ event }) => event.time },
    { name: 'type', toCell: ({ event }) => event.type },
    { name: 'subject', toCell: ({ event }) => event.subject },
    { name: 'response', toCell: ({ responseStatus, fault }) => responseStatus ?? fault },
    { name: 'ms', toCell: ({ durationMs }) => durationMs },
    { name: 'id', toCell: ({ event }) => event.id },
  ],
  idOf: ({ event }) => event.id,
};
