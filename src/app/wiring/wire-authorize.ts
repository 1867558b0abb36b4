import type { IncomingMessage, ServerResponse } from 'node:http';
import { type AuthorizeTraffic, createAuthorizeTraffic } from '../../authorize/authorize-traffic.ts';
import { Verifier } from '../../authorize/verifier.ts';
import type { KeyVerifier } from '../../keys/key-verifier.ts';
import type { ReplicaContext } from '../replica-context.ts';
import type { RequestObservers } from '../request-observers.ts';
import type { WiredProxy } from './wire-proxy.ts';

/** What the port for other gateways and services is built from. */
export interface AuthorizeParts extends Pick<WiredProxy, 'proxy' | 'options'> {
  readonly observers: Pick<RequestObservers, 'authorized' | 'verified' | 'rejected'>;
}

/** The port for other gateways and services, before it listens. */
export interface WiredAuthorize {
  readonly verifier: KeyVerifier;
  /** `management` serves the requests to verify a secret. */
  readonly traffic: (management: (req: IncomingMessage, res: ServerResponse) => void) => AuthorizeTraffic;
}

export function wireAuthorize(
  { settings }: ReplicaContext,
  { proxy, options, observers }: AuthorizeParts,
): WiredAuthorize {
  const { tracing } = options;
  const decision = {
    ...options,
    observe: observers.authorized,
    tracing: tracing && {
      begin: (req: IncomingMessage, startedAtMs: number) => tracing.begin(req, startedAtMs, 'authorize'),
      stop: () => tracing.stop(),
    },
  };
  return {
    verifier: new Verifier({ decision: options, observe: observers.verified }),
    traffic: (verify) =>
      createAuthorizeTraffic({
        decision,
        counters: proxy.counters,
        tokens: settings.authorizeTokens,
        onRejected: (error, requestId) => observers.rejected(error, requestId, 'authorize'),
        verify,
      }),
  };
}
