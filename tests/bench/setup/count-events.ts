// A receiver of webhooks in a separate process, at the port that it is given. Sends how many events each request had, at first 0.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

createServer(async (req, res) => {
  const events = [JSON.parse(await text(req))].flat();
  res.writeHead(204).end();
  process.send?.({ events: events.length });
}).listen(Number(process.argv[2]), '127.0.0.1', () => process.send?.({ events: 0 }));
process.once('disconnect', () => process.exit());
