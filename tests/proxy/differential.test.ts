import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type Allowance,
  areAmong,
  fingerprint,
  readAllowances,
  readRecorded,
  YARDSTICKS,
  type Yardstick,
} from './differential/comparison.ts';
import { type Contender, type Outcome, overLanes, sendTo } from './differential/contender.ts';
import { AFTER, type CorpusCase, readCorpus } from './differential/corpus.ts';
import { startHaproxy, startNginx } from './differential/debian-proxies.ts';
import { mutants } from './differential/mutants.ts';
import { type ReadRequest, readStrictly } from './differential/strict-reading.ts';
import { startTollgate } from './differential/tollgate.ts';

const LANES = 8;
const TEST_TIMEOUT_MS = 120_000;
/**
 * Rounds of mutants, one mutant a lane each, as many as there is time for: the same ones each time, so that a change of ours is what makes
 * the test fail. To look for new ones: `MUTANT_SEED=$RANDOM MUTANT_MS=300000 MUTANT_ROUNDS=10000 npm test -- tests/proxy/differential`.
 */
const MUTANT_MS = Number(process.env.MUTANT_MS ?? '15000');
const ROUNDS = Number(process.env.MUTANT_ROUNDS ?? '150');
const SEED = Number(process.env.MUTANT_SEED ?? '7');

const corpus = readCorpus();
const allowances = readAllowances();
const recorded = readRecorded();
const yardsticks: Partial<Record<Yardstick, Contender>> = {};
/** What the gateway did with each case. */
let outcomes: readonly Outcome[];
/** What each yardstick forwarded, by the name of the case: now, or when it was recorded. */
const elsewhere: Partial<Record<Yardstick, ReadonlyMap<string, readonly string[]>>> = {};

beforeAll(async () => {
  const tollgate = await startTollgate(LANES, 2000);
  const started = { nginx: await startNginx(LANES), haproxy: await startHaproxy(LANES) };
  await Promise.all([
    allCases(tollgate).then((seen) => {
      outcomes = seen;
    }),
    ...YARDSTICKS.map(async (name) => {
      const contender = started[name];
      if (contender !== undefined) yardsticks[name] = contender;
      elsewhere[name] =
        contender === undefined
          ? new Map(Object.entries(recorded[name].forwarded))
          : new Map(
              (await allCases(contender)).map(({ forwarded }, i) => [nameOf(i), forwarded.map(fingerprint)]),
            );
    }),
  ]);
  await tollgate.stop();
}, TEST_TIMEOUT_MS);
afterAll(async () => {
  for (const name of YARDSTICKS) await yardsticks[name]?.stop();
});

function allCases(contender: Contender): Promise<Outcome[]> {
  return overLanes(contender.lanes, corpus, (lane, { bytes }) => sendTo(lane, bytes + AFTER));
}

function nameOf(index: number): string {
  return corpus[index]?.name ?? '';
}

/** The cases of which the gateway forwards something that is not forwarded elsewhere. */
function beyond(elsewhereForwarded: (each: CorpusCase) => readonly string[]): string[] {
  return corpus
    .filter((each, i) => !areAmong(outcomes[i]?.forwarded.map(fingerprint) ?? [], elsewhereForwarded(each)))
    .map(({ name }) => name)
    .toSorted();
}

function allowedFor(who: Allowance['who']): string[] {
  return allowances.flatMap((allowance) => (allowance.who === who ? allowance.cases : [])).toSorted();
}

describe('the corpus of hostile bytes', () => {
  it('has its recorded responses, and no others', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(150);
    for (const name of YARDSTICKS) {
      expect(Object.keys(recorded[name].forwarded).toSorted()).toEqual(
        corpus.map((each) => each.name).toSorted(),
      );
    }
  });

  it('reaches the backend as far as each case says', () => {
    const seen = corpus.map(({ name }, i) => [name, outcomes[i]?.forwarded.length]);
    expect(Object.fromEntries(seen)).toEqual(
      Object.fromEntries(corpus.map(({ name, forwards }) => [name, forwards])),
    );
  });

  it('is forwarded only as a reader without leniency reads it, framing included', () => {
    const read = (bytes: string) => readStrictly(bytes + AFTER).requests;
    expect(beyond(({ bytes }) => read(bytes).map(fingerprint))).toEqual(allowedFor('strict reading'));
    for (const [i, { name, bytes }] of corpus.entries()) {
      const sent = read(bytes);
      for (const request of outcomes[i]?.forwarded ?? []) {
        const original = sent.find((each) => fingerprint(each) === fingerprint(request));
        if (original !== undefined) expect([name, framing(request)]).toEqual([name, framing(original)]);
      }
    }
  });

  it('reaches the backend as requests that can be read in one way only', () => {
    for (const { forwarded, malformed } of outcomes) {
      expect(malformed).toEqual([]);
      forwarded.forEach(expectUnambiguous);
    }
  });

  it.each(YARDSTICKS)(
    'is not forwarded where %s rejects it, with the exceptions that have a reason',
    (name) => {
      expect(beyond((each) => elsewhere[name]?.get(each.name) ?? [])).toEqual(allowedFor(name));
    },
  );

  it('has a reason for each exception, and exceptions that its own pattern finds', () => {
    for (const { reason, cases, bytes } of allowances) {
      expect(reason.length).toBeGreaterThan(40);
      const pattern = new RegExp(bytes);
      for (const name of cases) expect(corpus.find((each) => each.name === name)?.bytes).toMatch(pattern);
    }
  });
});

describe('the corpus, changed at random', () => {
  /** The garbage ends what still waits for bytes: it completes no head and no chunk. */
  const BEHIND = AFTER + '\0'.repeat(2000);
  let tollgate: Contender;
  beforeAll(async () => {
    tollgate = await startTollgate(LANES, 400);
  });
  afterAll(() => tollgate?.stop());

  const isAllowed = (who: Allowance['who'], bytes: string): boolean =>
    allowances.some((allowance) => allowance.who === who && new RegExp(allowance.bytes).test(bytes));

  it(
    `is forwarded as a strict reader reads it, never where nginx rejects it (${SEED})`,
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(mutants(), { minLength: LANES, maxLength: LANES }), async (round) => {
          const seen = await overLanes(tollgate.lanes, round, (lane, bytes) => sendTo(lane, bytes + BEHIND));
          const work = round.map((bytes, i) => ({ bytes, forwarded: seen[i]?.forwarded ?? [] }));
          for (const [i, { bytes, forwarded }] of work.entries()) {
            expect(seen[i]?.malformed).toEqual([]);
            forwarded.forEach(expectUnambiguous);
            if (isAllowed('strict reading', bytes)) continue;
            const sent = readStrictly(bytes + BEHIND).requests.map(withFraming);
            expectAmong(bytes, forwarded.map(withFraming), sent);
          }
          const { nginx } = yardsticks;
          if (nginx === undefined) return;
          await overLanes(nginx.lanes, work, async (lane, { bytes, forwarded }) => {
            const ours = forwarded.map(fingerprint);
            if (ours.length === 0 || isAllowed('nginx', bytes)) return;
            const areAll = (those: readonly ReadRequest[]) => areAmong(ours, those.map(fingerprint));
            const outcome = await sendTo(lane, bytes + BEHIND, areAll);
            expectAmong(bytes, ours, outcome.forwarded.map(fingerprint));
          });
        }),
        { numRuns: ROUNDS, seed: SEED, interruptAfterTimeLimit: MUTANT_MS, endOnFailure: true },
      );
    },
    TEST_TIMEOUT_MS + MUTANT_MS,
  );
});

function expectAmong(bytes: string, ours: readonly string[], theirs: readonly string[]): void {
  if (areAmong(ours, theirs)) return;
  throw new Error(
    `of ${JSON.stringify(bytes)}\nwe forwarded ${JSON.stringify(ours)}\nand not ${JSON.stringify(theirs)}`,
  );
}

/** One framing field, one Host, one key, and nothing that belongs to a hop but what frames the body. */
function expectUnambiguous({ fields }: ReadRequest): void {
  const count = (...names: readonly string[]) => fields.filter(([name]) => names.includes(name)).length;
  expect(count('content-length', 'transfer-encoding')).toBeLessThanOrEqual(1);
  expect([count('host'), count('x-api-key')]).toEqual([1, 1]);
  expect(count('te', 'trailer', 'keep-alive', 'proxy-connection', 'expect', 'http2-settings')).toBe(0);
  expect(fields.filter(([name]) => name.includes('_'))).toEqual([]);
}

/** A body of nothing may be announced or not. */
function framing({ framing: kind, body }: ReadRequest): string {
  return body === '' ? 'none' : kind;
}

function withFraming(request: ReadRequest): string {
  return `${framing(request)}: ${fingerprint(request)}`;
}
