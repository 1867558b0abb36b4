import { BAD_CHUNK, bodyOf, chunksOf, LAST_CHUNK, type Segment, segmentsOf } from './segments.ts';
import type { RequestPlan } from './sequence.ts';

/** A request as it is sent. */
export interface RequestMessage {
  readonly segments: readonly Segment[];
  /** What the client does behind the last segment. */
  readonly afterwards: 'nothing' | 'fin' | 'reset';
  /** The gateway gets its head, and so knows its method. */
  readonly hasHead: boolean;
  /** Nothing of it is malformed or missing: only then may the backend see it whole. */
  readonly isWhole: boolean;
}

/** The bytes of a request with this secret. */
export function requestMessage(plan: RequestPlan, secret: string): RequestMessage {
  const head = Buffer.from(requestHead(plan, secret), 'latin1');
  const body = bodyOf(plan.token, plan.bodyBytes);
  const framed = plan.framing === 'chunked' ? Buffer.concat([chunksOf(body), LAST_CHUNK]) : body;
  const message = Buffer.concat([head, framed]);
  const { fault } = plan;
  if (fault.kind === 'cut') {
    const cut = message.subarray(0, Math.max(1, Math.floor(fault.at * message.length)));
    const afterwards = fault.by === 'silence' ? 'nothing' : fault.by;
    const hasHead = cut.length >= head.length;
    return { segments: segmentsOf(cut, plan.segments), afterwards, hasHead, isWhole: false };
  }
  if (fault.kind === 'bad chunk') {
    const good = chunksOf(body.subarray(0, Math.floor(fault.at * body.length)));
    const bad = Buffer.concat([head, good, BAD_CHUNK]);
    return { segments: segmentsOf(bad, plan.segments), afterwards: 'nothing', hasHead: true, isWhole: false };
  }
  return {
    segments: segmentsOf(message, plan.segments),
    afterwards: 'nothing',
    hasHead: true,
    isWhole: true,
  };
}

function requestHead(plan: RequestPlan, secret: string): string {
  const lines = [
    `${plan.method} /${plan.token} HTTP/${plan.version}`,
    'Host: api.example.com',
    `Authorization: Bearer ${secret}`,
  ];
  if (plan.framing === 'length') lines.push(`Content-Length: ${plan.bodyBytes}`);
  if (plan.framing === 'chunked') lines.push('Transfer-Encoding: chunked');
  if (plan.expectsContinue) lines.push('Expect: 100-continue');
  if (plan.isUpgrade) {
    lines.push('Connection: Upgrade', 'Upgrade: websocket');
    lines.push('Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13');
  } else if (plan.isLast) {
    lines.push('Connection: close');
  } else if (plan.version === '1.0') {
    lines.push('Connection: keep-alive');
  }
  return `${lines.join('\r\n')}\r\n\r\n`;
}
