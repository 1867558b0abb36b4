import { requireDocumented } from './documented-responses.ts';
import { ROOT_TOKEN } from './gateway.ts';

/** A response of the management interface. */
export interface Managed {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
  readonly body: any;
}

/** Calls the management interface as an admin's script would. Rejects where a response is not as the OpenAPI document says. */
export class Admin {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Managed> {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${ROOT_TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const { status, headers: received } = response;
    const managed = { status, headers: received, body: await response.json() };
    requireDocumented(method, path, { ...managed, type: received.get('content-type') ?? '' });
    return managed;
  }

  /** Makes a key, bound to the plan where one is given. */
  async makeKey(name: string, planId?: string): Promise<{ readonly id: string; readonly secret: string }> {
    const { id, secret } = (await this.#must('POST', '/consumer-api-key/create', { name })).body;
    if (planId !== undefined) await this.bind(id, planId);
    return { id, secret };
  }

  async makePlan(rateLimitId: string, limit: number, period: string): Promise<void> {
    await this.#must('POST', '/rate-limit/create', { rateLimitId, description: '', limit, period });
  }

  async bind(consumerApiKeyId: string, rateLimitId: string): Promise<void> {
    await this.#must('POST', '/api-keys/apply-rate-limit', { consumerApiKeyId, rateLimitId });
  }

  async detail(keyId: string): Promise<Managed['body']> {
    return (await this.#must('GET', `/consumer-api-key/${keyId}`)).body;
  }

  async deleteKey(keyId: string): Promise<void> {
    await this.#must('DELETE', `/consumer-api-key/${keyId}`);
  }

  async #must(method: string, path: string, body?: unknown): Promise<Managed> {
    const response = await this.call(method, path, body);
    if (response.status >= 300)
      throw new Error(
        `${method} ${path} was responded to with ${response.status}: ${JSON.stringify(response.body)}`,
      );
    return response;
  }
}
