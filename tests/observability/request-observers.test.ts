import { describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { observeRequests } from '../../src/app/request-observers.ts';
import { KeyMetrics } from '../../src/observability/key-metrics.ts';
import type { BufferedLogger } from '../../src/platform/buffered-logger.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { createLogger, type LogLevel } from '../../src/platform/logger.ts';
import { systemRandom } from '../../src/platform/random.ts';
import type { ExchangeSummary } from '../../src/proxy/steps/record.ts';

const request: ExchangeSummary = {
  requestId: 'one',
  traceId: undefined,
  method: 'GET',
  path: '/',
  status: 200,
  outcome: 'forwarded',
  errorCode: undefined,
  failure: undefined,
  durationMs: 2,
  gatewayMs: 1,
  backendEndedAtMs: null,
  bodyBytes: 0,
  keyId: 'key_1',
  decision: undefined,
  limitId: undefined,
  shadowLimitIds: [],
};

describe('observing requests', () => {
  it.each([
    [0, 'info', 0],
    [1, 'warn', 0],
    [1, 'info', 1],
  ] as const)('with ACCESS_LOG %s and LOG_LEVEL %s makes %s loggers', (accessLog, level: LogLevel, made) => {
    let loggers = 0;
    const lines = createLogger('silent');
    const bufferedLogger = (): BufferedLogger => {
      loggers += 1;
      return { lines, flush: async () => {} };
    };
    const log = createLogger(level);
    const observers = observeRequests(
      { accessLog, metricsPerKey: 0, backendUrl: new URL('http://backend.example') },
      { clock: systemClock, random: systemRandom, log, bufferedLogger, mask: (path) => path },
    );
    observers.proxied(request);
    void observers.flush();
    expect(loggers).toBe(made);
    expect(observers.readings).toEqual([]);
  });

  it.each([
    [0x00, '/second'],
    [0xff, '/first'],
  ])('samples requests in turn so that chance chooses which: of random bytes %i the %s', (byte, chosen) => {
    const paths: string[] = [];
    const lines = pino({}, { write: (line: string) => void paths.push(JSON.parse(line).path) });
    const observers = observeRequests(
      { accessLog: 0.5, metricsPerKey: 0, backendUrl: null },
      {
        ...{ clock: systemClock, log: lines, mask: (path) => path },
        random: { bytes: (count) => Buffer.alloc(count, byte) },
        bufferedLogger: () => ({ lines, flush: async () => {} }),
      },
    );
    for (let turn = 0; turn < 3; turn += 1)
      for (const path of ['/first', '/second']) observers.proxied({ ...request, path });
    expect(paths).toEqual([chosen, chosen, chosen]);
  });
});

describe('the metrics of the busiest keys', () => {
  function measured(shown: number) {
    let nowMs = 0;
    const keys = new KeyMetrics(shown, () => nowMs);
    return {
      keys,
      pass: (ms: number) => {
        nowMs += ms;
      },
      shown: () => {
        const value = keys.reading().read();
        return typeof value === 'number' ? [] : value.map(([labels, count]) => [labels.key_id, count]);
      },
    };
  }

  it('show as many keys as configured, those with the most recent requests', () => {
    const { keys, shown, pass } = measured(2);
    for (let key = 1; key <= 5; key += 1) {
      for (let i = 0; i < key * 10; i += 1) keys.observe(`key_${key}`, 'forwarded');
    }
    expect(shown()).toEqual([
      ['key_5', 50],
      ['key_4', 40],
    ]);
    pass(5 * 60_000);
    for (let i = 0; i < 20; i += 1) keys.observe('key_1', 'limited');
    // All of a key's requests are counted, whenever it was shown.
    expect(shown()).toEqual([
      ['key_1', 10],
      ['key_1', 20],
      ['key_5', 50],
    ]);
  });

  it('show a key that becomes the busiest once 10 000 keys are in use', () => {
    const { keys, shown } = measured(2);
    for (let i = 0; i < 10_000; i += 1) keys.observe(`key_${i}`, 'forwarded');
    for (let i = 0; i < 50; i += 1) keys.observe('key_0', 'forwarded');
    for (let i = 0; i < 1000; i += 1) keys.observe('key_new', 'forwarded');
    expect(shown()).toEqual([
      ['key_new', 1000],
      ['key_0', 51],
    ]);
  });

  it('of workers show a key that becomes the busiest once 10 000 keys are in use', () => {
    const all = measured(1);
    const worker = measured(0);
    for (let i = 0; i < 10_000; i += 1) worker.keys.observe(`key_${i}`, 'forwarded');
    all.keys.add(worker.keys.take());
    for (let i = 0; i < 1000; i += 1) worker.keys.observe('key_new', 'forwarded');
    all.keys.add(worker.keys.take());
    expect(all.shown()).toEqual([['key_new', 1000]]);
  });

  it('are bounded, and have room again once keys have no more requests', () => {
    const { keys, shown, pass } = measured(20_000);
    for (let key = 0; key < 12_000; key += 1) keys.observe(`key_${key}`, 'forwarded');
    expect(shown()).toHaveLength(10_000);
    pass(7 * 60_000);
    keys.observe('key_late', 'forwarded');
    expect(shown()).toEqual([['key_late', 1]]);
  });
});
