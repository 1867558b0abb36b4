/** The counts that every row of usage over time has. All can be summed; failed requests are those that were not successful. */
interface UsageRowColumns {
  readonly requests: number;
  readonly successful: number;
  readonly forwarded: number;
  /** Microseconds that the forwarded ones took together. */
  readonly forwarded_us: number;
  readonly rate_limited: number;
  /** Final status 4xx, 429 included. */
  readonly client_errors: number;
  readonly server_errors: number;
  readonly shadow_limited: number;
  /** Bytes of request and of response bodies. */
  readonly bytes_in: number;
  readonly bytes_out: number;
}

/** The table `usage_hours`: requests of a key in an hour of UTC under a plan. Rows outlive their key. */
export interface UsageHoursTable extends UsageRowColumns {
  readonly key_id: string;
  /** Its first instant. */
  readonly hour: Date;
  /** The plan that applied; empty when none did. */
  readonly plan_id: string;
}

/** The tables `usage_endpoint_days` and `usage_customer_days`: requests of a key in a day of UTC under a plan, by name. */
export interface UsageDaysTable extends UsageRowColumns {
  readonly key_id: string;
  /** YYYY-MM-DD. */
  readonly day: string;
  readonly plan_id: string;
  /** A name of the key's list in the detail response, `__other__` included. */
  readonly name: string;
}

/** The table `usage_shards`: the last batch that was moved of each shard, by the Redis data set that it came from. */
export interface UsageShardsTable {
  readonly shard: number;
  readonly source: string;
  readonly last_batch: number;
  readonly moved_at: Date;
}
