import { setTimeout as pause } from 'node:timers/promises';
import { InvalidArgumentError, Option } from 'commander';
import type { paths } from '../../client/management-api.ts';
import { bodyOf } from '../../client/management-client.ts';
import { untilRead } from '../api/follow-events.ts';
import { managed, type Session } from '../api/session.ts';
import type { Declare } from '../declare.ts';
import { instant, seconds, wholeNumberFrom } from '../option-values.ts';
import type { Listing } from '../output/columns.ts';

interface TopOptions {
  readonly from: string;
  readonly count: number;
  readonly every: number;
  readonly once?: boolean;
}

interface BusyKey {
  readonly consumerApiKeyId: string;
  /** Null for a key that was deleted, and for all keys if the token may not read keys. */
  readonly name: string | null;
  readonly requests: number;
  readonly rateLimited: number;
  readonly failed: number;
  readonly averageResponseTimeMs: number;
}

type Row = paths['/api-keys/usage']['get']['responses'][200]['content']['application/json']['rows'][number];

/** Moves the cursor to the upper left and clears the screen below it, which redraws without flicker. */
const HOME = '\u001b[H\u001b[J';

export const declareTop: Declare = (command, terminal) =>
  void managed<TopOptions>(
    command
      .description(
        'Shows the keys with the most requests, again and again until Ctrl-C; once where standard output is no terminal. The counts may be behind by USAGE_FLUSH_MS.',
      )
      .option('--from <when>', 'count from then on: how long ago, or an instant', '1h')
      .option('--count <keys>', 'how many keys, 1 to 100', wholeNumberFrom(1, 100), 20)
      .addOption(new Option('--every <time>', 'between two looks').argParser(pauseSeconds).default(5, '5s'))
      .option('--once', 'look once')
      .addHelpText(
        'after',
        '\nExamples:\n  tollgate top\n  tollgate top --from 24h --count 5 --once -o json',
      ),
    terminal,
    async (session, _words, options) => {
      const { output } = session;
      const isLive = !options.once && output.format === 'table' && terminal.stdout.isTTY;
      let keys = await busiest(session, options);
      for (;;) {
        if (isLive) terminal.stdout.write(HOME);
        await output.report(BUSY_KEYS, keys, keys);
        if (!isLive) return;
        await pause(options.every * 1000);
        keys = await untilRead('The usage', () => busiest(session, options), session);
      }
    },
  );

/** Without a pause the looks would keep the gateway busy, and timers take no more than 24 days. */
function pauseSeconds(text: string): number {
  const duration = seconds(text);
  if (duration >= 1 && duration <= 86_400) return duration;
  throw new InvalidArgumentError('It must be from 1s to 24h.');
}

async function busiest({ client }: Session, { from, count }: TopOptions): Promise<readonly BusyKey[]> {
  const query = {
    from: instant(from, 'ago'),
    interval: 'total' as const,
    groupBy: 'key',
    top: count,
  };
  const series = await bodyOf(client.GET('/api-keys/usage', { params: { query } }));
  if (typeof series === 'string') throw new TypeError('the gateway sent CSV, which was not asked for');
  return series.rows
    .filter(isKey)
    .toSorted((one, other) => other.requests - one.requests)
    .map((row) => ({
      consumerApiKeyId: row.consumerApiKeyId,
      name: row.consumerApiKeyName ?? null,
      requests: row.requests,
      rateLimited: row.rateLimited,
      failed: row.failed,
      averageResponseTimeMs: row.averageResponseTimeMs,
    }));
}

/** False for the row with the sum of all other keys. */
function isKey(row: Row): row is Row & { consumerApiKeyId: string } {
  return row.consumerApiKeyId !== undefined && row.consumerApiKeyId !== '__other__';
}

const BUSY_KEYS: Listing<BusyKey> = {
  columns: [
    { name: 'id', toCell: ({ consumerApiKeyId }) => consumerApiKeyId },
    { name: 'name', toCell: ({ name }) => name },
    { name: 'requests', toCell: ({ requests }) => requests },
    { name: 'limited', toCell: ({ rateLimited }) => rateLimited },
    { name: 'failed', toCell: ({ failed }) => failed },
    { name: 'ms', toCell: ({ averageResponseTimeMs }) => averageResponseTimeMs },
  ],
  idOf: ({ consumerApiKeyId }) => consumerApiKeyId,
};
