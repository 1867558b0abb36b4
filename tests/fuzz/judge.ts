import type { FuzzClient } from './fuzz-client.ts';
import { type ForwardedResponse, INTRUDER, responseMessage } from './response-message.ts';
import type { ReadResponse } from './response-reader.ts';
import type { Arrival, ScriptedBackend } from './scripted-backend.ts';
import { bodyOf } from './segments.ts';
import type { RequestPlan } from './sequence.ts';

/** What is wrong with what one client got. */
export function judgeClient({ sent, reader }: FuzzClient, isPolite: boolean): string[] {
  const findings = reader.fault === undefined ? [] : [reader.fault];
  sent.forEach((plan, i) => {
    const response = reader.complete[i] ?? (i === reader.complete.length ? reader.begun : undefined);
    const fault = response === undefined ? undefined : judgeResponse(plan, response);
    if (fault !== undefined) findings.push(`${plan.token}: ${fault}`);
    // Behind a response that closes the connection none is to come.
    const isLast = reader.complete.slice(0, i).some(({ headers }) => headers.get('connection') === 'close');
    if (!isPolite || isLast) return;
    if (response?.isComplete !== true) findings.push(`${plan.token}: no response in a polite sequence`);
    else if (!isForwarded(response))
      findings.push(`${plan.token}: ${response.status} in a polite sequence: ${response.body}`);
  });
  return findings;
}

/** Whether the backend made the response, rather than the gateway. */
export function isForwarded({ headers }: ReadResponse): boolean {
  return headers.has('x-token');
}

function judgeResponse(plan: RequestPlan, response: ReadResponse): string | undefined {
  const unasked = response.interim.find(
    (status) => status !== 103 && !(status === 100 && plan.expectsContinue),
  );
  if (unasked !== undefined) return `an interim ${unasked} without a request`;
  if (response.body.includes(INTRUDER)) return 'the body holds unsolicited bytes';
  if (!isForwarded(response)) return judgeRejection(plan, response);
  const token = response.headers.get('x-token');
  if (token !== plan.token) return `the response of ${token}`;
  const { forwarded } = responseMessage(plan);
  if (forwarded === undefined) return `a response that must not be forwarded: ${response.status}`;
  return judgeForwarded(plan, response, forwarded);
}

/** A response of the gateway's own. */
function judgeRejection(
  { method }: RequestPlan,
  { status, headers, body, isComplete }: ReadResponse,
): string | undefined {
  if (status < 400) return `a ${status} that neither the backend nor a rejection explains`;
  if (method === 'HEAD' || !isComplete) return undefined;
  const isJson = headers.get('content-type')?.startsWith('application/json') && body.includes('"code":"');
  return isJson ? undefined : `a ${status} that is no rejection: ${body.toString('latin1', 0, 200)}`;
}

function judgeForwarded(
  plan: RequestPlan,
  { status, body, isComplete }: ReadResponse,
  forwarded: ForwardedResponse,
): string | undefined {
  if (status !== forwarded.status) return `status ${status} in place of ${forwarded.status}`;
  if (isComplete && !forwarded.isWhole) return 'a truncated response looks complete';
  const whole = bodyOf(plan.token, Math.max(plan.response.bodyBytes, body.length));
  if (!body.equals(whole.subarray(0, body.length))) return 'a body that is not its own';
  if (isComplete && body.length !== forwarded.body.length)
    return `a complete body of ${body.length} bytes in place of ${forwarded.body.length}`;
  return undefined;
}

/** What is wrong with what reached the backend. `keyOf` is the secret that the client of a token sent. */
export function judgeBackend(
  backend: ScriptedBackend,
  secretOf: (token: string) => string | undefined,
): string[] {
  const findings = backend.strays.map((stray) => `the backend got ${stray}`);
  for (const arrivals of Map.groupBy(backend.arrivals, ({ token }) => token).values()) {
    const [first] = arrivals;
    const plan = first === undefined ? undefined : backend.planOf(first.token);
    if (plan === undefined) continue;
    for (const fault of [
      judgeRepetition(plan, arrivals),
      ...arrivals.map((one) => judgeArrival(plan, one, secretOf)),
    ])
      if (fault !== undefined) findings.push(`${plan.token}: ${fault}`);
  }
  return findings;
}

/** Rule 13: sent again once at most, and only what can have had no effect. */
function judgeRepetition(
  { method, framing, bodyBytes }: RequestPlan,
  arrivals: readonly Arrival[],
): string | undefined {
  const [first] = arrivals;
  if (first === undefined || arrivals.length === 1) return undefined;
  if (arrivals.length > 2) return `reached the backend ${arrivals.length} times`;
  // A length of 0 is no body.
  const hasBody = framing === 'chunked' || bodyBytes > 0;
  if (!REPEATABLE.has(method) || hasBody) return `${method} reached the backend twice`;
  if (first.served === 0) return 'reached the backend twice, first on a new connection';
  if (first.bytesSent > 0) return 'reached the backend twice, although its response had begun';
  return undefined;
}

function judgeArrival(
  plan: RequestPlan,
  { request }: Arrival,
  secretOf: (token: string) => string | undefined,
): string | undefined {
  if (request === undefined) return undefined;
  const { readsBody } = plan.response;
  if (readsBody && plan.fault.kind !== 'none')
    return 'reached the backend whole, although the client never sent all of it';
  if (request.method !== plan.method) return `reached the backend as ${request.method}`;
  if (readsBody && request.body !== bodyOf(plan.token, plan.bodyBytes).toString('latin1'))
    return 'reached the backend with another body';
  const keys = request.fields.filter(([name]) => name === 'x-api-key').map(([, value]) => value);
  if (keys.length !== 1 || keys[0] !== secretOf(plan.token)) return 'reached the backend with another key';
  return undefined;
}

const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
