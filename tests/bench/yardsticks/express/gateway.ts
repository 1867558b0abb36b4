import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import express from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { Redis } from 'ioredis';

/**
 * The gateway that one builds first: Express, a middleware that awaits a decision in Redis, and http-proxy-middleware as it comes.
 * Arguments: port, port of the backend, port of Redis, file of keys, file of the script, window in milliseconds.
 */
const [port, backendPort, redisPort, keysFile = '', scriptFile = '', windowMs = ''] = process.argv.slice(2);

const keys = new Map<string, { readonly count: string; readonly limit: string }>();
for (const line of readFileSync(keysFile, 'utf8').trim().split('\n')) {
  const [secret = '', id = '', limit = ''] = line.split(' ');
  keys.set(secret, { count: `bench-express:${id}`, limit });
}
const script = readFileSync(scriptFile, 'utf8');
const sha = createHash('sha1').update(script).digest('hex');
const redis = new Redis({ host: '127.0.0.1', port: Number(redisPort) });
await redis.script('LOAD', script);

const app = express();
app.use(async (req, res, next) => {
  const secret = /^bearer (.+)$/i.exec(req.headers.authorization ?? '')?.[1] ?? '';
  const key = keys.get(secret);
  if (key === undefined) {
    res.status(401).json({ error: 'a key is required' });
    return;
  }
  const [allowed, remaining, endsInMs] = (await redis.evalsha(sha, 1, key.count, key.limit, windowMs)) as [
    number,
    number,
    number,
  ];
  const seconds = Math.ceil(endsInMs / 1000);
  res.set({
    'X-RateLimit-Limit': key.limit,
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(Math.floor(Date.now() / 1000) + seconds),
  });
  if (allowed === 0) {
    res.status(429).set('Retry-After', String(seconds)).json({ error: 'rate limit exceeded' });
    return;
  }
  req.headers['x-api-key'] = secret;
  next();
});
app.use(createProxyMiddleware({ target: `http://127.0.0.1:${backendPort}`, changeOrigin: true }));
app.listen(Number(port), '127.0.0.1');
