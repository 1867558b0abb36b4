import { BAD_CHUNK, bodyOf, chunksOf, LAST_CHUNK, type Segment, segmentsOf } from './segments.ts';
import type { Intrusion, MalformedPart, RequestPlan, ResponsePlan } from './sequence.ts';

/** Part of all bytes that must reach no client. */
export const INTRUDER = 'intruder';

/** A response as the backend sends it. */
export interface ResponseMessage {
  readonly segments: readonly Segment[];
  /** What comes after it, unasked. */
  readonly later: LateSegment | undefined;
  /** `keep`: serves the next request. `silence`: says nothing more. */
  readonly afterwards: 'keep' | 'silence' | 'fin' | 'reset';
  /** What the client may see of it; undefined: nothing, not even its head. */
  readonly forwarded: ForwardedResponse | undefined;
}

export interface ForwardedResponse {
  readonly status: number;
  readonly body: Buffer;
  /** False: the client must be able to tell that a part of the body is missing. */
  readonly isWhole: boolean;
}

export interface LateSegment extends Segment {
  /** Sent only if the gateway has written nothing more on the connection by then: otherwise it would be unknown whose response it is. */
  readonly onlyWhileIdle: boolean;
}

/** What the backend sends for a request. */
export function responseMessage(request: RequestPlan): ResponseMessage {
  const { response: plan, token } = request;
  if (plan.status === 101) return switchingMessage(request);
  const hasBody = mayHaveBody(request);
  const body = hasBody ? bodyOf(token, plan.bodyBytes) : NOTHING;
  const head = Buffer.from(responseHead(request, hasBody), 'latin1');
  const { fault } = plan;
  if (fault.kind === 'malformed') return malformedMessage(request, head, body);
  const framed = hasBody && plan.framing === 'chunked' ? Buffer.concat([chunksOf(body), LAST_CHUNK]) : body;
  const message = Buffer.concat([head, framed]);
  if (fault.kind === 'cut') {
    const at = Math.floor(fault.at * message.length);
    // An orderly end of the connection is the end of a body without a length, wherever it comes.
    const isWhole = hasBody && plan.framing === 'close' && fault.by === 'fin';
    const seen = isWhole ? body.subarray(0, Math.max(0, at - head.length)) : body;
    const forwarded = at < head.length ? undefined : { status: plan.status, body: seen, isWhole };
    return {
      segments: timed(message.subarray(0, at), plan),
      later: undefined,
      afterwards: fault.by,
      forwarded,
    };
  }
  const endsWithConnection = hasBody && plan.framing === 'close';
  const end =
    plan.afterwards === 'announced close' || (endsWithConnection && plan.afterwards === 'keep')
      ? 'fin'
      : plan.afterwards;
  const isWhole = !endsWithConnection || end === 'fin';
  const more = { ...withMoreBehind(timed(message, plan), plan, hasBody), afterwards: end };
  return { ...more, forwarded: { status: plan.status, body, isWhole } };
}

/** What the backend sends without a request. */
export function intrusionMessage(kind: Intrusion): Buffer {
  switch (kind) {
    case 'response':
      return STRAY_RESPONSE;
    case 'half a response':
      return STRAY_RESPONSE.subarray(0, STRAY_RESPONSE.length >> 1);
    case 'interim':
      return Buffer.from(`HTTP/1.1 103 Early Hints\r\nX-Token: ${INTRUDER}\r\n\r\n`);
    case 'garbage':
      return Buffer.from(`${INTRUDER}\r\n\r\n`);
  }
}

/** Whether the response to this request has a body (RFC 9112 section 6.3). */
function mayHaveBody({ method, response: { status } }: RequestPlan): boolean {
  return method !== 'HEAD' && status !== 204 && status !== 304;
}

function responseHead({ token, response: plan }: RequestPlan, hasBody: boolean): string {
  const interim = plan.interim.map((status) => `HTTP/1.1 ${status} Interim\r\nX-Token: ${token}\r\n\r\n`);
  const part = malformedPart(plan, hasBody);
  const lines = [
    `${part === 'status line' ? 'HTTP/one' : 'HTTP/1.1'} ${plan.status} Reason`,
    `X-Token: ${token}`,
    ...framingLines(plan, hasBody),
  ];
  if (part === 'header') lines.push('Bad Header: x');
  if (part === 'length') lines.push('Content-Length: 5, 6');
  if (plan.afterwards === 'announced close') lines.push('Connection: close');
  return `${interim.join('')}${lines.join('\r\n')}\r\n\r\n`;
}

function framingLines(plan: ResponsePlan, hasBody: boolean): string[] {
  if (!hasBody) return plan.bodyNobodyReads === 'none' ? [] : [`Content-Length: ${STRAY_RESPONSE.length}`];
  if (plan.framing === 'close') return [];
  return [plan.framing === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${plan.bodyBytes}`];
}

/** What is malformed in it; where there are no chunks it is something else. */
function malformedPart({ fault, framing }: ResponsePlan, hasBody: boolean): MalformedPart | undefined {
  if (fault.kind !== 'malformed') return undefined;
  const hasChunks = hasBody && framing === 'chunked';
  return fault.part === 'chunk' && !hasChunks ? 'status line' : fault.part;
}

function malformedMessage(request: RequestPlan, head: Buffer, body: Buffer): ResponseMessage {
  const { response: plan } = request;
  const end = { later: undefined, afterwards: 'silence' } as const;
  if (malformedPart(plan, mayHaveBody(request)) !== 'chunk')
    return { ...end, segments: timed(Buffer.concat([head, body]), plan), forwarded: undefined };
  const at = plan.fault.kind === 'malformed' ? Math.floor(plan.fault.at * body.length) : 0;
  const message = Buffer.concat([head, chunksOf(body.subarray(0, at)), BAD_CHUNK]);
  return { ...end, segments: timed(message, plan), forwarded: { status: plan.status, body, isWhole: false } };
}

/** To a request that asked for it a tunnel, through which the body comes; to any other a fault. */
function switchingMessage({ token, isUpgrade, response: plan }: RequestPlan): ResponseMessage {
  const head = `HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Token: ${token}\r\n\r\n`;
  const body = bodyOf(token, plan.bodyBytes);
  const segments = timed(Buffer.concat([Buffer.from(head, 'latin1'), body]), plan);
  const afterwards =
    plan.afterwards === 'announced close' || plan.afterwards === 'keep' ? 'fin' : plan.afterwards;
  return {
    segments,
    later: undefined,
    afterwards,
    forwarded: isUpgrade ? { status: 101, body, isWhole: false } : undefined,
  };
}

/** Adds what comes behind the end: a body that is not read, or unsolicited bytes. */
function withMoreBehind(
  segments: readonly Segment[],
  plan: ResponsePlan,
  hasBody: boolean,
): Pick<ResponseMessage, 'segments' | 'later'> {
  const when = hasBody ? plan.surplus : plan.bodyNobodyReads;
  // A body without a length has nothing behind it.
  if (hasBody && plan.framing === 'close') return { segments, later: undefined };
  const last = segments.at(-1);
  if (last === undefined || when === 'none' || when === 'announced') return { segments, later: undefined };
  if (when === 'same segment') {
    const longer = { ...last, bytes: Buffer.concat([last.bytes, STRAY_RESPONSE]) };
    return { segments: [...segments.slice(0, -1), longer], later: undefined };
  }
  // A connection on which a body is still announced must never be used again, so what it brings belongs to no request.
  const later = { turns: 1 + plan.segments.turns, bytes: STRAY_RESPONSE, onlyWhileIdle: hasBody };
  return { segments, later };
}

function timed(message: Buffer, { delay, segments }: ResponsePlan): Segment[] {
  return segmentsOf(message, segments).map((segment, i) =>
    i === 0 ? { ...segment, turns: delay } : segment,
  );
}

const NOTHING = Buffer.alloc(0);
const STRAY_RESPONSE = Buffer.from(
  `HTTP/1.1 200 OK\r\nX-Token: ${INTRUDER}\r\nContent-Length: ${INTRUDER.length}\r\n\r\n${INTRUDER}`,
);
