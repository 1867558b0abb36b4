import { CommandFault } from '../command-fault.ts';
import type { DemoGateway } from './demo-gateway.ts';
import { createKey } from './demo-records.ts';

const EXPECTED = '200 200 200 200 200 429, 401';

/**
 * Sends six requests with a key whose plan allows five a minute, and one without a key. Returns a description of the responses; throws if
 * one is not as the plan says.
 */
export async function demonstrateRateLimit({ client, url }: DemoGateway): Promise<string> {
  const { secret } = await createKey(client, { name: 'Key of the first requests', rateLimitId: 'demo' });
  const withKey: number[] = [];
  for (let count = 0; count < 6; count += 1) withKey.push(await statusOf(url, secret));
  const withoutKey = await statusOf(url, undefined);
  const found = `${withKey.join(' ')}, ${withoutKey}`;
  if (found !== EXPECTED)
    throw new CommandFault('fault', `The gateway responded with ${found} instead of ${EXPECTED}.`);
  return `Tollgate runs at ${url}, in front of a sample backend. Its plan "demo" allows 5 requests per minute.

  six requests with a key   ${withKey.join(' ')}
  one without a key         ${withoutKey}
`;
}

async function statusOf(url: string, secret: string | undefined): Promise<number> {
  const response = await fetch(`${url}/hello`, {
    ...(secret !== undefined && { headers: { authorization: `Bearer ${secret}` } }),
  });
  await response.body?.cancel();
  return response.status;
}
