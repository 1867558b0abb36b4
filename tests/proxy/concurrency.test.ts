import { describe, expect, it } from '@jest/globals';
import { until } from '../support/until.ts';
import { withGateway } from './support/with-gateway.ts';

/** Numbers in 0 … 1 that are the same in every run. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

describe('many requests at a time', () => {
  const stage = withGateway({ backendConnections: 8, backendWaiting: 10_000 });

  it('each get their own response when others abort or fail, and are recorded once', async () => {
    const random = numbers(7);
    stage.backend.onConnection((connection) => {
      let seen = 0;
      connection.socket.on('data', () => {
        const paths = [...connection.text.matchAll(/(?:GET|POST) (\/\d+) HTTP/g)].map(([, path]) => path);
        for (const path of paths.slice(seen)) {
          seen += 1;
          const body = `<${path}>${'.'.repeat(Math.floor(random() * 3000))}!`;
          const kind = random();
          setTimeout(() => {
            if (kind < 0.05) connection.reset();
            else if (kind < 0.1) connection.end();
            else if (kind < 0.5)
              connection.send(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
            else {
              connection.send(
                `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n`,
              );
              setTimeout(() => connection.send(`${body}\r\n0\r\n\r\n`), random() * 5);
            }
          }, random() * 10);
        }
      });
    });
    let sent = 0;
    let responses = 0;
    let left = 0;
    async function visitor(): Promise<void> {
      for (let i = 0; i < 20; i += 1) {
        const id = sent++;
        const leaves = random() < 0.1;
        const client = await stage.gateway.send(
          random() < 0.3
            ? `${stage.gateway.head(`POST /${id}`, 'Connection: close', 'Content-Length: 3')}abc`
            : stage.gateway.head(`GET /${id}`, 'Connection: close'),
        );
        if (leaves) {
          await client.staysOpen(random() * 8);
          client.destroy();
          left += 1;
          continue;
        }
        const text = await client.ended();
        const bodies = text.match(/<\/\d+>/g) ?? [];
        expect(bodies.length).toBeLessThanOrEqual(1);
        if (bodies.length === 1) expect(bodies[0]).toBe(`</${id}>`);
        if (text.includes('!')) responses += 1;
      }
    }
    await Promise.all(Array.from({ length: 40 }, visitor));
    await stage.gateway.settled();
    // A visitor that left before its request was read was never there.
    await until(() => stage.gateway.observed.length === stage.gateway.recorded.length);
    expect(stage.gateway.recorded.length).toBeGreaterThanOrEqual(800 - left);
    expect(stage.gateway.recorded.length).toBeLessThanOrEqual(800);
    expect(responses).toBeGreaterThan(550);
    const successful = stage.gateway.recorded.filter((request) => request.successful).length;
    expect(successful).toBeGreaterThanOrEqual(responses);
    expect(new Set(stage.gateway.recorded.map(({ endpoint }) => endpoint)).size).toBe(
      stage.gateway.recorded.length,
    );
  });
});
