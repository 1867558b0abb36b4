import type { Endpoint } from '../endpoint.ts';
import { openApiDocument } from './document.ts';

/** Shows the OpenAPI document of this gateway. `endpoints` returns all its endpoints, including this one. */
export function openApiEndpoint(endpoints: () => readonly Endpoint[]): Endpoint {
  return {
    method: 'get',
    path: '/tollgate/openapi.json',
    operationId: 'openApiDocument',
    summary: 'Show this document',
    scope: null,
    status: 200,
    response: { type: 'object', description: 'An OpenAPI 3.1 document.' },
    errors: [],
    handle: async () => openApiDocument(endpoints()),
  };
}
