import { bodySchema } from '../../http/body-schema.ts';
import { HANDOVER_STATES, type Handover } from '../../keys/handovers/handover.ts';
import { HandoverGone } from '../../keys/handovers/handover-errors.ts';
import { SELF_SERVICE_PATH } from '../../paths/path-matcher.ts';
import { consumerOf, type Principal } from '../../permissions/principal.ts';
import { isoSeconds, isoSecondsOrNull } from '../../platform/timestamps.ts';
import type { Endpoint, ManagementServices } from '../endpoint.ts';
import { INSTANT, named, objectOf, orNull, TEXT } from '../response-schemas.ts';

/** The path of the page of links, below that of self-service. */
export const HANDOVER_PATH = `${SELF_SERVICE_PATH}/handover`;

/** Who has opened a link, before it is known whose key it is. */
export const HOLDER: Principal = {
  ...consumerOf({ id: '', name: 'holder of a link' }, { version: 0, endsAtMs: null }),
  ...{ id: null, version: null },
};

interface OpenedBody {
  readonly token: string;
}
/** Not the exact form: a text that was copied in part is an unknown link, and no fault of a form. */
const OPENED_BODY = bodySchema(['token'], {
  token: {
    description: 'must be a string of 1 to 256 characters: what the link has after its #',
    type: 'string',
    minLength: 1,
    maxLength: 256,
  },
});

/** Shows what a link is, and uses nothing up. */
const openHandover: Endpoint<OpenedBody> = {
  method: 'post',
  path: `${HANDOVER_PATH}/open`,
  operationId: 'openHandover',
  summary: 'Show what a hand-over link is, without using it up',
  scope: null,
  forHolders: true,
  body: OPENED_BODY,
  limitsGuesses: 'handover_not_found',
  status: 200,
  response: named(
    'OpenedHandover',
    objectOf({
      state: { type: 'string', enum: HANDOVER_STATES },
      name: { ...orNull(TEXT), description: 'Of the key; null if the link shows no secret.' },
      note: { ...orNull(TEXT), description: 'Of the administrator; null if the link shows no secret.' },
      expiresAt: INSTANT,
      usedAt: orNull(INSTANT),
    }),
  ),
  errors: ['handover_not_found'],
  async handle({ body: { token }, change }, services) {
    const { handover, state, keyName } = await services.handovers.show(token, change.address);
    if (state === 'used') logReuse(handover, services);
    const { note, expiresAtMs, usedAtMs } = handover;
    return {
      state,
      name: state === 'open' ? keyName : null,
      note: state === 'open' ? note : null,
      expiresAt: isoSeconds(expiresAtMs),
      usedAt: isoSecondsOrNull(usedAtMs),
    };
  },
};

/** Shows the secret of a link, once. */
const revealHandover: Endpoint<OpenedBody> = {
  method: 'post',
  path: `${HANDOVER_PATH}/reveal`,
  operationId: 'revealHandover',
  summary: 'Show the secret of a hand-over link, which is used up by that',
  scope: null,
  forHolders: true,
  body: OPENED_BODY,
  limitsGuesses: 'handover_not_found',
  status: 200,
  response: named('RevealedSecret', objectOf({ consumerApiKeyId: TEXT, name: TEXT, secret: TEXT })),
  errors: ['handover_not_found', 'handover_gone'],
  async handle({ body: { token }, change }, services) {
    const { handovers, log } = services;
    const found = await handovers.show(token, change.address);
    const { keyId, id: handoverId } = found.handover;
    const actor = { type: 'key', id: keyId, name: found.keyName ?? '' } as const;
    const { keyName, secret } = await handovers
      .reveal(token, change.address, { ...change, actor, reason: null })
      .catch((error: unknown) => {
        if (error instanceof HandoverGone && error.details.state === 'used')
          logReuse(found.handover, services);
        throw error;
      });
    log.info({ event: 'key_handed_over', keyId, handoverId }, 'the secret of a consumer key was handed over');
    return { consumerApiKeyId: keyId, name: keyName, secret };
  },
};

/** A link that is opened again may have been read by others on its way, also where its consumer was the first to use it. */
function logReuse(
  handover: Handover,
  { handovers, log }: Pick<ManagementServices, 'handovers' | 'log'>,
): void {
  if (!handovers.noteReuse(handover)) return;
  const { id: handoverId, keyId } = handover;
  log.warn({ event: 'handover_reused', keyId, handoverId }, 'a hand-over link was opened after it was used');
}

/** The endpoints for holders of a link. */
export const HOLDER_ENDPOINTS: readonly Endpoint[] = [openHandover, revealHandover];
