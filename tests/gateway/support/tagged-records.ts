import { until } from '../../support/until.ts';

/** Ids by the name of their parameter. */
export type Ids = Readonly<Record<string, string>>;

/** Sends a request with the root token and resolves with the body of its response. Rejects if it has failed. */
// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect and fail where it is not there
export type Must = (method: string, path: string, body?: object) => Promise<any>;

/** Makes one record of each kind that can have tags, with names that begin with the tag, and a plan for its key. */
export async function makeRecords(
  must: Must,
  tag: string,
): Promise<{ readonly ids: Ids; readonly secret: string }> {
  const rateLimitId = `plan-of-${tag}`;
  const tags = [tag];
  await must('POST', '/rate-limit/create', { rateLimitId, description: '', limit: 5, period: 'hour' });
  const key = { name: `${tag} key`, externalId: `${tag}-customer`, tags, rateLimitId };
  const { id: consumerApiKeyId, secret } = await must('POST', '/consumer-api-key/create', key);
  const link = await must('POST', `/consumer-api-key/${consumerApiKeyId}/handover`, { ttlSeconds: 600 });
  const token = { name: `${tag} token`, scopes: ['keys:read'], onlyTags: tags };
  const { adminTokenId } = await must('POST', '/tollgate/admin-token/create', token);
  const hook = { url: `http://127.0.0.1:1/${tag}`, events: ['tollgate.key.*'], onlyTags: tags };
  const { webhookId } = await must('POST', '/tollgate/webhook/create', hook);
  const { deliveryId } = await must('POST', `/tollgate/webhook/${webhookId}/test`);
  const { jobId } = await must('POST', '/api-keys/bulk', { ids: [consumerApiKeyId], action: 'enable' });
  await until(async () => (await must('GET', `/tollgate/job/${jobId}`)).state === 'done');
  return {
    ids: {
      ...{ consumerApiKeyId, handoverId: link.handoverId, adminTokenId },
      ...{ webhookId, deliveryId, jobId, rateLimitId },
    },
    secret,
  };
}
