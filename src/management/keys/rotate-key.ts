import { bodySchema, type FieldSchema } from '../../http/body-schema.ts';
import type { HandoverRequest } from '../../keys/handovers/handover-service.ts';
import { MAX_GRACE_SECONDS } from '../../keys/key-rotation.ts';
import type { KeptSecret } from '../../keys/secrets/secret-repository.ts';
import { isoSeconds } from '../../platform/timestamps.ts';
import { type Endpoint, Reply } from '../endpoint.ts';
import {
  HANDOVER,
  madeWithHandover,
  presentSecret,
  withSecretOrHandover,
} from '../handovers/handover-fields.ts';
import { INSTANT, named, TEXT } from '../response-schemas.ts';
import { KEY_FIELDS, readExpiry } from './key-fields.ts';
import { givenSecretIn, SECRET } from './secret-fields.ts';
import { KEY_ITEM, presentKeyItem } from './shown-key-fields.ts';

/** How long both secrets of a key, an admin token or a webhook are valid. */
const GRACE_SECONDS: FieldSchema = {
  description: `must be an integer from 0 to ${MAX_GRACE_SECONDS}: for how long the previous secret stays valid`,
  type: 'integer',
  minimum: 0,
  maximum: MAX_GRACE_SECONDS,
};

/** The body of a rotation to a secret that the gateway makes. */
export interface RotateBody {
  readonly graceSeconds: number;
}
export const ROTATE_BODY = bodySchema(['graceSeconds'], { graceSeconds: GRACE_SECONDS });

interface RotateKeyBody extends RotateBody {
  readonly secret?: string;
  readonly expiresAt?: string | null;
  readonly handover?: HandoverRequest;
}
const ROTATE_KEY_BODY = bodySchema(['graceSeconds'], {
  graceSeconds: GRACE_SECONDS,
  secret: SECRET,
  expiresAt: KEY_FIELDS.expiresAt,
  handover: HANDOVER,
});

/** Gives a key a new secret. The previous one stays valid for a grace period. */
export const rotateConsumerKey: Endpoint<RotateKeyBody> = {
  method: 'post',
  path: '/consumer-api-key/{consumerApiKeyId}/rotate',
  operationId: 'rotateConsumerKey',
  summary: 'Give a consumer API key a new secret; the previous one stays valid for a time',
  scope: 'keys:write',
  body: ROTATE_KEY_BODY,
  givenSecrets: givenSecretIn,
  status: 200,
  tagged: true,
  conditional: true,
  headers: ['Tollgate-Applies-Within'],
  response: named(
    'RotatedConsumerKey',
    withSecretOrHandover({
      consumerApiKeyId: TEXT,
      previousValidUntil: INSTANT,
      message: TEXT,
    }),
  ),
  errors: ['key_not_found', 'rotation_in_progress', 'secret_taken', 'handover_unavailable'],
  async handle({ id, body, header, principal, change }, services) {
    const { clock, log } = services;
    const { graceSeconds, secret: given, handover } = body;
    const expiresAtMs = readExpiry(body.expiresAt, clock);
    const presented = principal.type === 'key' ? (principal.version ?? undefined) : undefined;
    const rotated = await madeWithHandover(
      ({ rotations }) =>
        rotations.rotate(id, { graceSeconds, secret: given, expiresAtMs, presented }, change),
      { handover, header, change },
      services,
    );
    const { key, previousValidUntilMs } = rotated;
    log.info({ event: 'key_rotated', keyId: key.id, graceSeconds }, 'a consumer key got a new secret');
    return Reply.tagged(key, {
      consumerApiKeyId: key.id,
      ...presentSecret(rotated),
      previousValidUntil: isoSeconds(previousValidUntilMs),
      message:
        graceSeconds === 0
          ? 'The consumer API key has a new secret. The previous one is rejected from now on.'
          : 'The consumer API key has a new secret. The previous one is valid until previousValidUntil.',
    });
  },
};

const END_ROTATION_BODY = bodySchema(['keep'], {
  keep: { description: 'must be "new" or "previous"', type: 'string', enum: ['new', 'previous'] },
});

/** Ends a rotation early: the secret that is not kept is rejected from now on. */
export const endConsumerKeyRotation: Endpoint<{ readonly keep: KeptSecret }> = {
  method: 'post',
  path: '/consumer-api-key/{consumerApiKeyId}/end-rotation',
  operationId: 'endConsumerKeyRotation',
  summary: 'Leave a consumer API key one of its two secrets',
  scope: 'keys:write',
  body: END_ROTATION_BODY,
  status: 200,
  tagged: true,
  conditional: true,
  headers: ['Tollgate-Applies-Within'],
  response: KEY_ITEM,
  errors: ['key_not_found', 'no_rotation'],
  async handle({ id, body: { keep }, change }, { rotations, log }) {
    const key = await rotations.end(id, keep, change);
    log.info(
      { event: 'key_rotation_ended', keyId: key.id, keep },
      'the rotation of a consumer key was ended',
    );
    return Reply.tagged(key, presentKeyItem(key));
  },
};
