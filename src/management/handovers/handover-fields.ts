import type { ChangeContext } from '../../audit/change-context.ts';
import type { FieldSchema } from '../../http/body-schema.ts';
import { MAX_HANDOVER_SECONDS } from '../../keys/handovers/handover.ts';
import type { HandoverRequest, MadeHandover } from '../../keys/handovers/handover-service.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import type { Call, ManagementServices, ResponseSchema, UnitServices } from '../endpoint.ts';
import { INSTANT, named, objectOf, TEXT } from '../response-schemas.ts';

const LONGEST_NOTE = 256;

/** What an administrator says of a link. */
export const HANDOVER_FIELDS = {
  ttlSeconds: {
    description: `must be an integer from 1 to ${MAX_HANDOVER_SECONDS}: for how long the link works`,
    type: 'integer',
    minimum: 1,
    maximum: MAX_HANDOVER_SECONDS,
  },
  note: {
    description: `must be a string of 1 to ${LONGEST_NOTE} characters without control characters or unpaired surrogates, which the page of the link shows`,
    type: 'string',
    minLength: 1,
    maxLength: LONGEST_NOTE,
    pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*$',
    format: 'stored-text',
  },
} as const satisfies Readonly<Record<string, FieldSchema>>;

/** The field of a body that makes a secret: a link hands it over, and the response does not show it. */
export const HANDOVER = {
  description:
    'must be an object with ttlSeconds and, if wanted, a note: makes a link that shows the secret once, in place of the secret',
  type: 'object',
  additionalProperties: false,
  required: ['ttlSeconds'],
  properties: HANDOVER_FIELDS,
} as const satisfies FieldSchema;

/** A link that was made. */
export const MADE_HANDOVER = named(
  'MadeHandover',
  objectOf({
    handoverId: TEXT,
    url: { ...TEXT, description: 'Shows the secret once. It is in no later response.' },
    expiresAt: INSTANT,
  }),
);

export function presentMadeHandover({ handoverId, url, expiresAtMs }: MadeHandover): object {
  return { handoverId, url, expiresAt: isoSeconds(expiresAtMs) };
}

/** The schema of a response that has either the secret or a link for it. */
export function withSecretOrHandover(properties: Readonly<Record<string, ResponseSchema>>): ResponseSchema {
  return objectOf(properties, {
    secret: { ...TEXT, description: 'The new secret. Missing with "handover" in the request.' },
    handover: { ...MADE_HANDOVER, description: 'Only with "handover" in the request.' },
  });
}

/** A secret that was made, and the link that hands it over, if there is one. */
interface MadeSecret {
  readonly key: { readonly id: string };
  readonly secret: string;
  readonly handover?: MadeHandover;
}

interface HandoverCall extends Pick<Call<unknown>, 'header'> {
  readonly handover: HandoverRequest | undefined;
  readonly change: ChangeContext;
}

/** Runs work that makes a secret, in one transaction with its link if one is wanted. */
export async function madeWithHandover<Made extends MadeSecret>(
  work: (services: UnitServices) => Promise<Made>,
  { handover: request, header, change }: HandoverCall,
  services: UnitServices & Pick<ManagementServices, 'inUnit'>,
): Promise<Made & Pick<MadeSecret, 'handover'>> {
  if (request === undefined) return work(services);
  // The precondition of the request is that of the key before its change.
  const linkChange = { ...change, expects: undefined };
  return services.inUnit(async (unit) => {
    const made = await work(unit);
    const handover = await unit.handovers.makeFor(made, { request, host: header('Host') }, linkChange);
    return { ...made, handover };
  });
}

/** The link or, without one, the secret. */
export function presentSecret({ secret, handover }: MadeSecret): object {
  return handover === undefined ? { secret } : { handover: presentMadeHandover(handover) };
}
