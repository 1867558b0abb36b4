import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { Script } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { ERROR_CODES, InvalidBody, PlanInUse, TollgateError } from '../../src/errors.ts';
import { errorResponse } from '../../src/http/errors/error-responses.ts';
import { negotiatedError, prefersProblem } from '../../src/http/errors/problem-details.ts';

const PROBLEM = 'application/problem+json';
const LONGEST_READ_MS = 60_000;

function requestThatAccepts(accept: string): IncomingMessage {
  const req = new IncomingMessage(new Socket());
  req.headers.accept = accept;
  return req;
}

describe('an Accept header', () => {
  it.each([
    PROBLEM,
    'Application/Problem+JSON',
    `${PROBLEM}; charset=utf-8`,
    `${PROBLEM}, application/json`,
    `application/json, ${PROBLEM}`,
    `application/json;q=0.9, ${PROBLEM}`,
    `text/html, ${PROBLEM};q=0.2`,
    `*/*;q=0.5, ${PROBLEM};q=0.5`,
    `application/json;q=0, ${PROBLEM};q=0.001, */*`,
    `text/plain;x="a,b;q=0", ${PROBLEM}`,
    `text/plain;x="a\\",b;q=0", ${PROBLEM}`,
    `${PROBLEM}, text/plain;x="a,b`,
  ])('of %j asks for problem details', (accept) => {
    expect(prefersProblem(accept)).toBe(true);
  });

  it.each([
    undefined,
    '',
    '*/*',
    'application/*',
    'application/json',
    'application/xml, text/html',
    `${PROBLEM};q=0`,
    `${PROBLEM};q=0.000, */*;q=0`,
    `${PROBLEM};q=0.5, application/json`,
    `${PROBLEM};Q=0.5, application/json;q=0.6`,
    `${PROBLEM};q=0.5, application/*`,
    `${PROBLEM};q=0.9, */*`,
    `text/plain;x="${PROBLEM}"`,
    `text/plain;x="a, ${PROBLEM}`,
    `text/plain;x="a\\", ${PROBLEM}`,
    `${PROBLEM}x`,
  ])('of %j does not', (accept) => {
    expect(prefersProblem(accept)).toBe(false);
  });

  // At the speed of a search for the end of each quote, that would take hours.
  it.each(['"', '"\\', '"\\\\', '",'])('of a million %j is read all the same', (part) => {
    const accept = `${PROBLEM},${part.repeat(1_000_000)}`;
    const read = new Script('read()').runInNewContext(
      { read: () => prefersProblem(accept) },
      { timeout: LONGEST_READ_MS },
    );
    expect(read).toBe(true);
  });
});

describe('problem details', () => {
  it.each(ERROR_CODES)('of %s have a type, a title, the status, the sentence and the code', (code) => {
    const response = negotiatedError(
      new TollgateError(code, 'What went wrong.'),
      requestThatAccepts(PROBLEM),
    );
    const { status, headers } = errorResponse(new TollgateError(code, ''));
    expect(JSON.parse(response.body)).toEqual({
      type: `urn:problem-type:tollgate:${code}`,
      title: expect.stringMatching(/^[A-Z][a-z ]+$/),
      status,
      detail: 'What went wrong.',
      code,
    });
    expect(response.headers).toEqual({ ...headers, 'Content-Type': PROBLEM, Vary: 'Accept' });
  });

  it('keep the other fields of an error', () => {
    const faults = [{ field: 'limit', message: 'must be set' }];
    const bodyOf = (error: Error) => JSON.parse(negotiatedError(error, requestThatAccepts(PROBLEM)).body);
    expect(bodyOf(new InvalidBody(faults))).toMatchObject({ code: 'invalid_body', errors: faults });
    expect(bodyOf(new PlanInUse('gold', { boundKeys: 3, hasUnseenKeys: false }))).toMatchObject({
      code: 'plan_in_use',
      boundKeys: 3,
    });
  });

  it('hide what is no error of ours', () => {
    const { status, body } = negotiatedError(new Error('private'), requestThatAccepts(PROBLEM));
    expect([status, body.includes('private')]).toEqual([500, false]);
  });
});
