import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from '@jest/globals';
import OpenAI from 'openai';
import { until } from '../support/until.ts';
import { withClientStage } from './support/stage.ts';

const stage = withClientStage();
const QUESTION = { model: 'small', messages: [{ role: 'user' as const, content: 'Say hello' }] };

function client(apiKey = stage.key.secret, maxRetries = 0): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${stage.gateway.url}/v1`, maxRetries });
}

function chunk(content: string): string {
  const choices = [{ index: 0, delta: { content }, finish_reason: null }];
  return `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'small', choices })}\n\n`;
}

/** Begins a response as OpenAI's interface streams it. */
function begin(res: ServerResponse): void {
  res.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
}

describe("OpenAI's client, through the gateway", () => {
  it('gets a completion, and its backend the question and the key', async () => {
    let asked:
      | { readonly path: string | undefined; readonly key: unknown; readonly body: unknown }
      | undefined;
    stage.respond(async (req: IncomingMessage, res: ServerResponse) => {
      asked = { path: req.url, key: req.headers['x-api-key'], body: JSON.parse(await text(req)) };
      const message = { role: 'assistant', content: 'hello' };
      res.writeHead(200, { 'content-type': 'application/json' });
      res.end(
        JSON.stringify({
          id: 'c1',
          object: 'chat.completion',
          choices: [{ index: 0, message, finish_reason: 'stop' }],
        }),
      );
    });
    const { data, response } = await client().chat.completions.create(QUESTION).withResponse();
    expect(data.choices[0]?.message.content).toBe('hello');
    expect(asked).toEqual({ path: '/v1/chat/completions', key: stage.key.secret, body: QUESTION });
    expect(Number(response.headers.get('x-ratelimit-remaining'))).toBeGreaterThan(0);
  });

  it('gets each chunk of a stream as soon as the backend writes it', async () => {
    let response: ServerResponse | undefined;
    stage.respond((req, res) => {
      req.resume();
      begin(res);
      res.write(chunk('0'));
      response = res;
    });
    const stream = await client().chat.completions.create({ ...QUESTION, stream: true });
    let content = '';
    for await (const { choices } of stream) {
      content += choices[0]?.delta.content;
      // Nothing is written before what came before it has arrived here.
      if (content.length < 20) response?.write(chunk(String(content.length % 10)));
      else response?.end('data: [DONE]\n\n');
    }
    expect(content).toBe('01234567890123456789');
  });

  it('ends the request at the backend when it aborts a stream', async () => {
    let backendEnded: Promise<unknown> | undefined;
    stage.respond((_req, res) => {
      begin(res);
      res.write(chunk('a'));
      backendEnded = once(res, 'close');
    });
    const stream = await client().chat.completions.create({ ...QUESTION, stream: true });
    for await (const { choices } of stream) {
      expect(choices[0]?.delta.content).toBe('a');
      stream.controller.abort();
    }
    await backendEnded;
  });

  it('fails when a stream is cut, and does not take what came for all', async () => {
    stage.respond((_req, res) => {
      begin(res);
      res.write(chunk('a'), () => res.destroy());
    });
    const stream = await client().chat.completions.create({ ...QUESTION, stream: true });
    await expect(async () => {
      for await (const { choices } of stream) expect(choices[0]?.delta.content).toBe('a');
    }).rejects.toThrow();
  });

  it('knows a wrong key, an exhausted limit and an absent backend by their status', async () => {
    stage.respond((_req, res) => void res.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
    const ask = (openai: OpenAI) => openai.chat.completions.create(QUESTION);
    await expect(ask(client('tg_wrong'))).rejects.toThrow(OpenAI.AuthenticationError);
    await stage.admin.makePlan('one-question', 1, 'hour');
    const { secret } = await stage.admin.makeKey('asks once', 'one-question');
    await ask(client(secret));
    await expect(ask(client(secret))).rejects.toThrow(OpenAI.RateLimitError);
    stage.respond((req) => req.socket.destroy());
    await expect(ask(client())).rejects.toMatchObject({ status: 502, error: expect.any(String) });
  });

  it('waits as long as Retry-After says, and is served then', async () => {
    stage.respond((_req, res) => void res.writeHead(200, { 'content-type': 'application/json' }).end('{}'));
    await stage.admin.makePlan('a-second', 1, 'second');
    const { id, secret } = await stage.admin.makeKey('patient', 'a-second');
    const patient = client(secret, 5);
    await patient.chat.completions.create(QUESTION);
    await patient.chat.completions.create(QUESTION);
    await until(async () => (await stage.admin.detail(id)).usage.successfulRequests === 2);
  });
});
