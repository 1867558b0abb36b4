import { request } from 'node:http';

/** Whether a Docker engine responds within a second at DOCKER_HOST or the usual socket. */
export function dockerResponds(): Promise<boolean> {
  const host = process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock';
  const target = host.startsWith('unix://')
    ? { socketPath: host.slice('unix://'.length) }
    : { hostname: new URL(host).hostname, port: new URL(host).port || 2375 };
  return new Promise((resolve) => {
    const req = request({ ...target, path: '/_ping', timeout: 1000 }, (res) => {
      res.resume();
      resolve(res.statusCode === 200);
    });
    req.on('timeout', () => req.destroy());
    req.on('error', () => resolve(false));
    req.end();
  });
}
