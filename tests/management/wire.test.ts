import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ROOT_TOKEN, startManagement, type TestManagement } from './start-management.ts';

const BODY = '{"name": "n"}';

let management: TestManagement;
let port: number;
beforeAll(async () => {
  management = await startManagement();
  port = await management.listen();
});
afterAll(() => management?.stop());

/** Sends a create request up to the end of its head; `more` is sent once something was received, in HTTP/1.0 at once. Resolves with all that was received. */
async function exchange(fields: readonly string[], more = '', version = '1.1'): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('latin1');
  const head = [
    `POST /consumer-api-key/create HTTP/${version}`,
    'Host: gateway',
    'Connection: close',
    ...fields,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  let received = '';
  if (version === '1.0') socket.write(more);
  socket.on('data', (text: string) => {
    if (version !== '1.0' && received === '' && more !== '') socket.write(more);
    received += text;
  });
  await once(socket, 'end');
  socket.destroy();
  return received;
}

describe('a body that waits for 100 Continue', () => {
  const json = ['Content-Type: application/json', 'Expect: 100-continue'];

  it('is invited when the head is valid', async () => {
    const fields = [...json, `Authorization: Bearer ${ROOT_TOKEN}`, `Content-Length: ${BODY.length}`];
    const received = await exchange(fields, BODY);
    expect(received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 Created\r\n/);
  });

  it('is not invited from a client of HTTP/1.0, which would take that for the response', async () => {
    const fields = [...json, `Authorization: Bearer ${ROOT_TOKEN}`, `Content-Length: ${BODY.length}`];
    expect(await exchange(fields, BODY, '1.0')).toMatch(/^HTTP\/1\.1 201 Created\r\n/);
  });

  it('is never invited without the root token', async () => {
    const received = await exchange([...json, `Content-Length: ${BODY.length}`]);
    expect(received).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n/);
  });

  it('is never invited when its announced length is too large', async () => {
    const fields = [...json, `Authorization: Bearer ${ROOT_TOKEN}`, 'Content-Length: 65537'];
    expect(await exchange(fields)).toMatch(/^HTTP\/1\.1 413 Payload Too Large\r\n/);
  });
});

describe('a rejection', () => {
  it('does not wait for the body to arrive', async () => {
    expect(await exchange(['Content-Length: 10'])).toMatch(/^HTTP\/1\.1 401 /);
    expect(await exchange(['Content-Length: 10', `Authorization: Bearer ${ROOT_TOKEN}`])).toMatch(
      /^HTTP\/1\.1 415 /,
    );
  });

  it('of a second Authorization line is a 400', async () => {
    const line = `Authorization: Bearer ${ROOT_TOKEN}`;
    expect(await exchange([line, line, 'Content-Length: 0'])).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  });
});
