import { onPath, requireProgram } from './debian-package.ts';

const SERVER = 'redis-server';

/** The path of a Redis server's executable, installed where it is missing and can be. Throws with what to install otherwise. */
export async function redisBinary(): Promise<string> {
  return (await onPath(SERVER)) ?? (await onPath('valkey-server')) ?? (await requireProgram(SERVER, SERVER));
}
