import { type Endpoint, endpoint } from '../endpoint.ts';
import { openApiDocument } from './document.ts';

/** Shows the OpenAPI document of this very gateway. `endpoints` gives those that are served, this one among them. */
export function openApiEndpoint(endpoints: () => readonly Endpoint[]): Endpoint {
  return endpoint({
    method: 'get',
    path: '/tollgate/openapi.json',
    operationId: 'openApiDocument',
    summary: 'Show this document',
    scope: null,
    status: 200,
    response: { type: 'object', description: 'An OpenAPI 3.1 document.' },
    errors: [],
    handle: async () => openApiDocument(endpoints()),
  });
}
