import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { Admin } from '../../support/admin.ts';
import type { ChaosReplica } from '../chaos-replica.ts';
import type { SeededRandom } from '../seeded-random.ts';
import type { ChaosKey } from '../world.ts';

/** What Postgres says of a key, and the secret that it was given last: `undefined` once it is gone. */
export type KeyTruth =
  | { readonly isEnabled: boolean; readonly limit: number; readonly secret: string | undefined }
  | undefined;

/** A change of a key that a client asked for, maybe by its plan, and what was true when it had its response, whatever that said. */
export interface Change {
  readonly keyId: string;
  readonly what: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly status: number;
  readonly truth: KeyTruth;
}

const KEYS = 60;
/** Of the plans that keys are moved between. They are never used up. */
const LIMITS = [1_000_000, 2_000_000, 3_000_000];
/** From one change to the next. Milliseconds. */
const PAUSE_MS = 400;

/** Makes keys, and goes on changing them through any of the replicas, one change after the other. */
export class Changes {
  /** The keys to send requests with: those that were made, deleted ones and previous secrets included, and others. New ones come at the end. */
  readonly asked: ChaosKey[] = [];
  /** In the order of time, first the ones that made the keys. */
  readonly made: Change[] = [];
  readonly #replicas: readonly ChaosReplica[];
  readonly #postgres: Client;
  readonly #random: SeededRandom;
  readonly #keys: ChaosKey[] = [];
  /** The latest of each key, by its id. */
  readonly #secrets = new Map<string, string>();
  #isStopped = false;
  #running: Promise<void> = Promise.resolve();

  private constructor(replicas: readonly ChaosReplica[], postgres: Client, random: SeededRandom) {
    this.#replicas = replicas;
    this.#postgres = postgres;
    this.#random = random;
  }

  static async prepare(
    replicas: readonly ChaosReplica[],
    databaseUrl: string,
    random: SeededRandom,
  ): Promise<Changes> {
    const postgres = new Client({ connectionString: databaseUrl });
    await postgres.connect();
    const changes = new Changes(replicas, postgres, random);
    const admin = new Admin(replicas[0]?.url ?? '');
    for (const limit of LIMITS) await admin.makePlan(`limit-${limit}`, limit, 'day');
    for (let key = 0; key < KEYS; key += 1) await changes.#addKey(admin);
    return changes;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** No more changes; resolves when the last one is over. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    await this.#running;
    await this.#postgres.end();
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      await this.#changeOne();
      await wait(PAUSE_MS);
    }
  }

  async #addKey(admin: Admin): Promise<void> {
    const startedAt = performance.now();
    const planLimit = this.#random.pick(LIMITS);
    const key = await admin.makeKey(`key ${this.#keys.length}`, `limit-${planLimit}`);
    this.#secrets.set(key.id, key.secret);
    await this.#note([key.id], { what: 'create', startedAt, status: 201 });
    this.#keys.push({ ...key, limit: planLimit });
    this.asked.push({ ...key, limit: planLimit });
  }

  async #changeOne(): Promise<void> {
    const key = this.#random.pick(this.#keys);
    const admin = new Admin(this.#random.pick(this.#replicas).url);
    const path = `/consumer-api-key/${key.id}`;
    const rateLimitId = `limit-${this.#random.pick(LIMITS)}`;
    const plan = `/rate-limit/${rateLimitId}`;
    const [method, what, body] = this.#random.pick([
      ['DELETE', path, undefined],
      ['PATCH', path, { enabled: false }],
      ['PATCH', path, { enabled: true }],
      ['POST', '/api-keys/apply-rate-limit', { consumerApiKeyId: key.id, rateLimitId }],
      ['POST', '/api-keys/apply-rate-limit', { consumerApiKeyId: key.id, rateLimitId }],
      ['POST', `${path}/rotate`, { graceSeconds: 0 }],
      ['PATCH', plan, { limit: this.#random.pick(LIMITS) }],
    ] as const);
    const startedAt = performance.now();
    const { status, body: response } = await admin.call(method, what, body);
    if (what.endsWith('/rotate') && status === 200) this.#takeSecret(key, response.secret);
    const changed = what === plan ? await this.#keysUnder(rateLimitId) : [key.id];
    await this.#note(changed, { what: `${method} ${JSON.stringify(body ?? '')}`, startedAt, status });
    if (method === 'DELETE') await this.#addKey(admin).catch(() => {});
  }

  /** From now on the key is also asked with its new secret. */
  #takeSecret({ id, limit }: ChaosKey, secret: string): void {
    this.#secrets.set(id, secret);
    this.asked.push({ id, secret, limit });
  }

  async #keysUnder(planId: string): Promise<readonly string[]> {
    const { rows } = await this.#postgres.query<{ id: string }>(
      'SELECT id FROM consumer_keys WHERE plan_id = $1',
      [planId],
    );
    return rows.map(({ id }) => id);
  }

  async #note(
    keyIds: readonly string[],
    change: Pick<Change, 'what' | 'startedAt' | 'status'>,
  ): Promise<void> {
    const endedAt = performance.now();
    const { rows } = await this.#postgres.query<{ id: string; enabled: boolean; limit: string }>(
      'SELECT consumer_keys.id, enabled, "limit" FROM consumer_keys JOIN plans ON plans.id = coalesce(plan_id, $2) WHERE consumer_keys.id = ANY ($1)',
      [keyIds, 'default'],
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const keyId of keyIds) {
      const row = byId.get(keyId);
      const secret = this.#secrets.get(keyId);
      const truth = row && { isEnabled: row.enabled, limit: Number(row.limit), secret };
      this.made.push({ keyId, endedAt, truth, ...change });
    }
  }
}
