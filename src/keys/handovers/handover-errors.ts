import { TollgateError } from '../../errors.ts';
import { isoSecondsOrNull } from '../../platform/timestamps.ts';
import type { HandoverState } from './handover.ts';

/** A link that there is not, or that is older than its record. */
export class HandoverNotFound extends TollgateError {
  constructor() {
    super(
      'handover_not_found',
      'There is no such hand-over link. Check that the whole address was copied, or ask for another link.',
    );
  }
}

const GONE: Readonly<Record<HandoverState, string>> = {
  open: 'The link can hand nothing over.',
  used: 'The link was used already, and hands the secret over only once.',
  revoked: 'The link was revoked.',
  expired: 'The link has expired.',
  key_deleted: 'The key of the link was deleted.',
  key_rotated: 'The key has another secret by now.',
  key_expired: 'The key of the link has expired.',
  key_disabled: 'The key of the link is disabled.',
};

/** A link that hands nothing over. `state` says why, and `usedAt` when it was used. */
export class HandoverGone extends TollgateError {
  override readonly details: { readonly state: HandoverState; readonly usedAt: string | null };

  constructor(state: HandoverState, usedAtMs: number | null) {
    super('handover_gone', GONE[state]);
    this.details = { state, usedAt: isoSecondsOrNull(usedAtMs) };
  }
}

/** A gateway on which consumers can't reach the page of a link. */
export class HandoverUnavailable extends TollgateError {
  constructor() {
    super(
      'handover_unavailable',
      'Hand-over links need the address under which consumers reach the gateway: set PUBLIC_URL, and leave SELF_SERVICE_PATH on.',
    );
  }
}

/** A key whose secret the gateway does not keep, or may not show again. */
export class SecretNotAvailable extends TollgateError {
  constructor() {
    super(
      'secret_not_available',
      'The secret of this key can not be shown again. Make a link when the secret is made: send "handover" with the creation or the rotation of the key.',
    );
  }
}
