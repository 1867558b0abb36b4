import type { RecordVersion, RecordVersions } from '../../limiter/record-versions.ts';
import type { RedisConnection } from './connection.ts';
import { CHANGES_CHANNEL, periodKey, versionKey, windowKey } from './key-names.ts';
import { LuaScript } from './lua-script.ts';
import { redisUnavailable } from './redis-failure.ts';

/** Milliseconds that a version or a tombstone is kept: longer than any replica's reload may take. */
export const VERSION_KEPT_MS = '3600000';
/** Milliseconds after which a mark lapses: longer than any write to the record store may take. */
const MARK_KEPT_MS = '30000';
/** Calls that are under way together; more would hold up the server and the memory of the replica. */
const CHUNK_SIZE = 500;

/** The shared versions as Redis strings; changes are published on `tg:changes`. */
export class RedisRecordVersions implements RecordVersions {
  readonly #redis: RedisConnection;
  readonly #announceChange = new LuaScript('announceChange-1');
  readonly #settleVersion = new LuaScript('settleVersion-1');
  readonly #retireKey = new LuaScript('retireKey-3');

  constructor(redis: RedisConnection) {
    this.#redis = redis;
  }

  async announce(keyIds: readonly string[]): Promise<void> {
    await inChunks(keyIds, (keyId) =>
      this.#announceChange.run(this.#redis, [versionKey(keyId), MARK_KEPT_MS]),
    );
  }

  async settle(versions: readonly RecordVersion[]): Promise<void> {
    await inChunks(versions, async ({ keyId, version }) => {
      await this.#publish(keyId);
      await this.#settleVersion.run(this.#redis, [versionKey(keyId), version, VERSION_KEPT_MS, MARK_KEPT_MS]);
    });
  }

  async retire(keyId: string): Promise<void> {
    const keys = [versionKey(keyId), windowKey(keyId), periodKey(keyId)];
    await this.#publish(keyId);
    await this.#retireKey.run(this.#redis, [...keys, VERSION_KEPT_MS]);
  }

  /**
   * Before the version is written, while the mark makes every copy stale: when the answer to that write is here, the server has sent the
   * message to all who listen to it, and whoever made the change finds them forgetful. Published last, a server that is stopped between
   * two sockets would leave others with their denials for a moment.
   */
  async #publish(keyId: string): Promise<void> {
    try {
      await this.#redis.publish(CHANGES_CHANNEL, keyId);
    } catch (error) {
      throw redisUnavailable(error);
    }
  }
}

/** Client-side pipelining: the calls of a chunk are written one after the other and answered in one round trip. */
async function inChunks<Item>(items: readonly Item[], call: (item: Item) => Promise<unknown>): Promise<void> {
  for (let start = 0; start < items.length; start += CHUNK_SIZE) {
    await Promise.all(items.slice(start, start + CHUNK_SIZE).map(call));
  }
}
