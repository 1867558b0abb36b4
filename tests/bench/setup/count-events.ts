// A receiver of webhooks in a process of its own: sends its port, and how many events each request had.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

const server = createServer(async (req, res) => {
  const events = [JSON.parse(await text(req))].flat();
  res.writeHead(204).end();
  process.send?.({ events: events.length });
}).listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.once('disconnect', () => process.exit());
