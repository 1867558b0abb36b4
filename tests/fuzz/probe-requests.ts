import type { RequestPlan } from './sequence.ts';

/** Ordinary requests with ordinary responses, which must work after whatever came before. */
export function probeRequests(count: number): RequestPlan[] {
  return Array.from({ length: count }, (_, i) => ({
    token: `probe${i}`,
    method: 'GET',
    version: '1.1',
    framing: 'none',
    bodyBytes: 0,
    expectsContinue: false,
    isUpgrade: false,
    isLast: false,
    fault: { kind: 'none' },
    segments: { cuts: [], turns: 0 },
    response: {
      readsBody: true,
      trigger: 'whole request',
      // All of them are with the backend before the first has its response.
      delay: 10,
      interim: [],
      status: 200,
      framing: 'length',
      bodyBytes: 20,
      bodyNobodyReads: 'none',
      surplus: 'none',
      fault: { kind: 'none' },
      afterwards: 'keep',
      segments: { cuts: [], turns: 0 },
    },
  }));
}
