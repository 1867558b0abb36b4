import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestHandler, Response } from 'express';
import { TollgateError } from '../../errors.ts';
import type { ParsedRequest } from '../../http/parsed-request.ts';
import type { RequestNotes } from '../../http/with-request-id.ts';
import type { KeySnapshot, PresentedSecret } from '../../keys/consumer-key.ts';
import type { KeyService } from '../../keys/key-service.ts';
import { SELF_SERVICE_PATH } from '../../paths/path-matcher.ts';
import { consumerOf } from '../../permissions/principal.ts';
import { createEndpointApp, type EndpointAppOptions, methodFault } from '../management-app.ts';
import { notePrincipal } from '../principal-of.ts';
import { SELF_SERVICE_ENDPOINTS } from './self-service-endpoints.ts';

/** Self-service at a path of the public port. The proxied side has authenticated the key before. */
export interface SelfServiceApp {
  readonly path: string;
  /** `not_found` or `method_not_allowed` for a request that no endpoint responds to, with any key; else undefined. */
  faultOf(method: string, path: string): TollgateError | undefined;
  /** The `operationId` of the endpoint that responds. */
  operationOf(method: string, path: string): string | undefined;
  serve(req: IncomingMessage, res: ServerResponse, own: OwnKey): void;
}

/** The key that a request presents. */
interface OwnKey {
  readonly keyId: string;
  /** The presented secret as one of the key in this state. Throws the fault if the request may not use the key any more. */
  readonly presentedIn: (current: KeySnapshot) => PresentedSecret;
  readonly head: ParsedRequest;
  /** Filled in while the request is served. */
  readonly notes: RequestNotes;
}

/** Builds self-service at `ownPath`. */
export function createSelfServiceApp(
  ownPath: string,
  options: Omit<EndpointAppOptions, 'authenticated'>,
): SelfServiceApp {
  const authenticated = noteConsumer(options.services.keys);
  const app = createEndpointApp(SELF_SERVICE_ENDPOINTS, { ...options, authenticated });
  const usualPath = (text: string): string => SELF_SERVICE_PATH + text.slice(ownPath.length);
  const endpointsAt = (path: string) =>
    SELF_SERVICE_ENDPOINTS.filter((endpoint) => endpoint.path === usualPath(path));
  return {
    path: ownPath,
    faultOf(method, path) {
      const endpoints = endpointsAt(path);
      return endpoints.length === 0
        ? new TollgateError('not_found', 'There is no such endpoint.')
        : methodFault(endpoints, method);
    },
    operationOf(method, path) {
      const wanted = method === 'HEAD' ? 'get' : method.toLowerCase();
      return endpointsAt(path).find((endpoint) => endpoint.method === wanted)?.operationId;
    },
    serve(req, res, { keyId, presentedIn, head, notes }) {
      const locals: OwnKeyLocals = Object.assign(notes, { keyId, presentedIn });
      Reflect.set(res, 'locals', locals);
      // The endpoints are routed at the default path.
      req.url = usualPath(head.target);
      app(req, res);
    },
  };
}

interface OwnKeyLocals extends RequestNotes, Pick<OwnKey, 'keyId' | 'presentedIn'> {}

function noteConsumer(keys: Pick<KeyService, 'record'>): RequestHandler {
  return async (_req, res: Response, next) => {
    const { keyId, presentedIn } = res.locals as OwnKeyLocals;
    const { key, snapshot } = await keys.record(keyId, []);
    notePrincipal(res, consumerOf(key, presentedIn(snapshot)));
    next();
  };
}
