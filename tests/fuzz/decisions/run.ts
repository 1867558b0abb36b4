import { createServer } from 'node:http';
import { Admin } from '../../support/admin.ts';
import { gatewaySettings } from '../../support/gateway.ts';
import { startInProcess } from '../../support/in-process-gateway.ts';
import { listenOnLoopback } from '../../support/listen-on-loopback.ts';
import { startPostgresServer } from '../../support/postgres-server.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { readFuzzBounds } from '../fuzz-bounds.ts';
import { fuzzDecisions } from './fuzz-decisions.ts';
import { DECISION_SETTINGS } from './play-decisions.ts';

const { seconds, firstSeed, most } = readFuzzBounds(
  'fuzz:decisions',
  'Has random requests decided by the proxy, by calls of other gateways in every dialect, and by /verify, with keys of the same history, and invalid calls in between. The n-th sequence is made from the seed + n. Ends with 0 when all promises held.',
);

const backend = createServer((req, res) => {
  req.resume();
  res.end('ok');
});
const port = await listenOnLoopback(backend);
const redis = await startRedisServer();
const postgres = await startPostgresServer();
const gateway = await startInProcess({
  ...gatewaySettings(`http://127.0.0.1:${port}`, postgres.url, redis.url),
  ...DECISION_SETTINGS,
});
const write = (line: string): void => void process.stdout.write(`${line}\n`);
write(`from seed ${firstSeed}`);
const { played, findings, endings } = await fuzzDecisions(
  { gateway, admin: new Admin(gateway.url) },
  { firstSeed, most, deadline: performance.now() + seconds * 1000 },
);
for (const finding of findings) write(`NOT HELD: ${finding}`);
if (findings.length === 0) write(`${played} sequences: all promises held`);
for (const [ending, count] of [...endings].toSorted(([, a], [, b]) => b - a)) write(`${count} × ${ending}`);
await gateway.stop();
await postgres.stop();
await redis.stop();
process.exit(findings.length === 0 ? 0 : 1);
