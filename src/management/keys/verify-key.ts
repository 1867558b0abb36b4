import { TollgateError } from '../../errors.ts';
import { bodySchema } from '../../http/body-schema.ts';
import type { KeySnapshot } from '../../keys/consumer-key.ts';
import type { Verdict, VerifiedRequest, VerifyingClient } from '../../keys/key-verifier.ts';
import { MANAGED_VERIFY_PATH, VERIFY_PATH } from '../../paths/path-matcher.ts';
import type { Principal } from '../../permissions/principal.ts';
import { isoSecondsOrNull } from '../../platform/timestamps.ts';
import type { Endpoint } from '../endpoint.ts';
import { COUNT, INSTANT, listOf, named, objectOf, orNull, TEXT } from '../response-schemas.ts';
import { presentWindow } from './consumer-key-detail.ts';

const LONGEST_PATH = 8192;

/**
 * What the consumer chose is any text: it gets the verdict that it gets at the proxy. A caller may take 400 for a failure of the gateway,
 * after which it is set to allow the request. A method or path that the proxy does not forward is 400 there too.
 */
const VERIFY_BODY = bodySchema(['secret'], {
  secret: { description: 'must be a string: the secret as the consumer presented it', type: 'string' },
  method: {
    description: 'must be an HTTP method in capitals that the proxy forwards, such as "GET" or "POST"',
    type: 'string',
    pattern: '^(?!(?:TRACE|CONNECT)$)[A-Z][A-Z-]{0,31}$',
  },
  path: {
    description: `must be a path of up to ${LONGEST_PATH} visible ASCII characters that begins with "/", as the proxy accepts it`,
    type: 'string',
    maxLength: LONGEST_PATH,
    pattern: '^/[\\x21-\\x7e]*$',
  },
  customerId: {
    description:
      'must be a string: the id of the customer; one that is not 1 to 128 printable ASCII characters counts as "anonymous"',
    type: 'string',
  },
  address: {
    description:
      "must be a string: the consumer's IPv4 or IPv6 address; one that is no address counts as unknown",
    type: 'string',
  },
  origin: {
    description: 'must be a string: the Origin of the web page that makes the request',
    type: 'string',
  },
  cost: {
    description:
      'must be a whole number from 0 to 999999999999999: what the request costs in place of what its plan says',
    type: 'integer',
    minimum: 0,
    maximum: 999_999_999_999_999,
  },
  count: {
    description:
      'must be true or false; with false the request is decided and counted nowhere, not in usage either',
    type: 'boolean',
  },
});

const WINDOW = named(
  'VerifiedLimit',
  objectOf({
    limitId: TEXT,
    limit: { ...COUNT, description: 'The limit at the instant of the decision.' },
    remaining: COUNT,
    resetTime: INSTANT,
  }),
);

const DECISION = {
  allowed: { type: 'boolean' },
  status: { ...COUNT, description: 'What the proxy would have responded with; 200 if it had forwarded.' },
  code: { ...orNull(TEXT), description: 'The code of the rejection; "limited" for a limit of the plan.' },
};

/** The fields of the key are missing if no key that the token may see has the secret. */
const VERDICT = named(
  'Verdict',
  objectOf(DECISION, {
    consumerApiKeyId: TEXT,
    name: TEXT,
    externalId: orNull(TEXT),
    rateLimitId: { ...orNull(TEXT), description: 'The plan that applies; null: none, the key is unlimited.' },
    tags: listOf(TEXT),
    metadata: orNull({ type: 'object', additionalProperties: true }),
    expiresAt: orNull(INSTANT),
    customerId: TEXT,
    limits: { ...listOf(WINDOW), description: 'The enforced limits that applied, after the request.' },
    retryAfterSeconds: orNull(COUNT),
  }),
);

/** At a path of the port for other gateways and services. */
export const verifySecret = verification(VERIFY_PATH, 'verifySecret', 'Decide about a request of a consumer');

/** The same on the management interface, for the console and the command line. */
export const tryConsumerKey = verification(
  MANAGED_VERIFY_PATH,
  'tryConsumerKey',
  'Decide about a request of a consumer, on the port of the management interface',
);

function verification(path: string, operationId: string, summary: string): Endpoint<VerifiedRequest> {
  return {
    method: 'post',
    path,
    operationId,
    summary,
    scope: 'keys:verify',
    body: VERIFY_BODY,
    withoutTransaction: true,
    status: 200,
    response: VERDICT,
    errors: ['not_found'],
    async handle({ body, principal }, { verifier }) {
      if (verifier === undefined)
        throw new TollgateError('not_found', 'This gateway verifies no secrets: AUTHORIZE_PORT is not set.');
      return presentVerdict(await verifier.verify(body, clientOf(principal)));
    },
  };
}

function clientOf({ id, type, onlyTags }: Principal): VerifyingClient {
  return { id: id ?? type, onlyTags };
}

function presentVerdict(verdict: Verdict): object {
  const { allowed, status, code, key } = verdict;
  return { allowed, status, code, ...(key !== undefined && presentKey(key, verdict)) };
}

function presentKey(
  { keyId, plan, owner, expiresAtMs }: KeySnapshot,
  { customerId, windows, retryAfterSeconds }: Verdict,
): object {
  return {
    consumerApiKeyId: keyId,
    name: owner?.name ?? '',
    externalId: owner?.externalId ?? null,
    rateLimitId: plan?.id ?? null,
    tags: owner?.tags ?? [],
    metadata: owner?.metadata ?? null,
    expiresAt: isoSecondsOrNull(expiresAtMs),
    customerId,
    limits: windows
      .filter(({ limit }) => limit.mode === 'enforce')
      .map((window) => ({ limitId: window.limit.id, ...presentWindow(window) })),
    retryAfterSeconds,
  };
}
