import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';

/** A Redis that keeps on disk whatever it has acknowledged: it can be killed without a loss. */
export class DurableRedis {
  #server: RedisServer;
  readonly #directory: string;

  private constructor(server: RedisServer, directory: string) {
    this.#server = server;
    this.#directory = directory;
  }

  static async start(): Promise<DurableRedis> {
    const directory = await mkdtemp(join(tmpdir(), 'tollgate-chaos-redis-'));
    return new DurableRedis(await startRedisServer(durably(directory)), directory);
  }

  get url(): string {
    return this.#server.url;
  }

  pause(): void {
    this.#server.pause();
  }

  resume(): void {
    this.#server.resume();
  }

  /** Ends it without notice. */
  async kill(): Promise<void> {
    await this.#server.stop();
  }

  /** Starts it again where it was, with what it had. */
  async restart(): Promise<void> {
    const { port } = this.#server;
    this.#server = await startRedisServer([...durably(this.#directory), '--port', String(port)]);
  }

  async stop(): Promise<void> {
    await this.#server.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

function durably(directory: string): readonly string[] {
  return ['--dir', directory, '--appendonly', 'yes', '--appendfsync', 'always'];
}
