import { ChangeFollower } from '../../limiter/changes/change-follower.ts';
import { ChangePublisher } from '../../limiter/changes/change-publisher.ts';
import { DeferrableVersions } from '../../limiter/changes/deferrable-versions.ts';
import type { ChangedRecord } from '../../limiter/changes/record-changes.ts';
import { loggedRun, PeriodicTask } from '../../platform/periodic-task.ts';
import { CLOSE_DEADLINE_MS, type ReplicaContext } from '../replica-context.ts';
import type { Counting } from '../stores/counting.ts';
import type { Stores } from './wire-stores.ts';

const PRUNED_EVERY_MS = 600_000;

/** Called as `ChangeFollower` finds changes. */
interface ChangeListener {
  readonly onRead: (changed: readonly ChangedRecord[], untilMs: number) => void;
  readonly onMissed: () => void;
}

/** How changes of keys and plans reach all replicas. */
export interface RecordChangePaths {
  /** For changes of this replica. */
  readonly versions: DeferrableVersions;
  /** Changes that wait for their publication; undefined if this process counts alone. */
  readonly waiting: (() => number) | undefined;
  /** Calls the listener with changes of all replicas, once the records are prepared. */
  readonly follow: (listener: ChangeListener) => void;
  /** To be called once the tables exist. */
  readonly prepared: () => void;
}

type Parts = Pick<Stores, 'records' | 'counting'>;

/** Changes are published in Redis, and followed in the records as well. A process that counts alone needs neither. */
export function wireChanges(context: ReplicaContext, { records, counting }: Parts): RecordChangePaths {
  const { platform, shutdown } = context;
  const pruning = new PeriodicTask((goesOn) => prune(context, records, goesOn), {
    random: platform.random,
    pauseMs: PRUNED_EVERY_MS,
  });
  shutdown.add('retention of changes', CLOSE_DEADLINE_MS, () => pruning.stop());
  const { shared } = counting;
  if (shared === undefined)
    return { ...changePathsInProcess(context, counting), prepared: () => pruning.start() };
  return sharedPaths(context, { records, counting, shared, pruning });
}

/** For a process that counts alone: what it publishes reaches all of its parts. */
export function changePathsInProcess(
  { platform }: Pick<ReplicaContext, 'platform'>,
  counting: Pick<Counting, 'versions'>,
): RecordChangePaths {
  const versions = new DeferrableVersions({
    ...{ ...platform, shared: counting.versions },
    onPublished: () => {},
    partOf: () => 0,
  });
  return { versions, waiting: undefined, follow: () => {}, prepared: () => {} };
}

interface SharedParts extends Parts {
  readonly shared: NonNullable<Counting['shared']>;
  readonly pruning: PeriodicTask;
}

function sharedPaths(
  { platform, shutdown }: ReplicaContext,
  { records, counting, shared, pruning }: SharedParts,
): RecordChangePaths {
  const { recordChanges: changes } = records;
  const prepared = Promise.withResolvers<void>();
  let waiting = 0;
  const versions: DeferrableVersions = new DeferrableVersions({
    ...{ ...platform, shared: counting.versions },
    onPublished: (change) => publisher.note(change),
    partOf: shared.redis.partOf,
  });
  const publisher = new ChangePublisher({
    ...{ ...platform, changes, versions: shared.republished },
    onPublished: () => versions.reset(),
  });
  shutdown.add('publication of changes', CLOSE_DEADLINE_MS, () => publisher.stop());
  followReturns(shared, () => {
    versions.reset();
    publisher.repeatSoon();
  });
  return {
    versions,
    waiting: () => waiting,
    follow: ({ onRead, onMissed }) => {
      const follower = new ChangeFollower({
        ...{ ...platform, changes, onRead, onMissed },
        onSilence: (nowMs) => onRead([], nowMs),
        onCounted: (counted) => {
          waiting = counted.waiting;
          if (counted.claimable > 0) publisher.publishSoon();
        },
      });
      shutdown.add('following of changes', CLOSE_DEADLINE_MS, () => follower.stop());
      void prepared.promise.then(() => follower.start());
    },
    prepared: () => {
      publisher.start();
      pruning.start();
      prepared.resolve();
    },
  };
}

/** Calls `returned` when Redis is there again, maybe with older data; not when this replica finds it for the first time. */
function followReturns({ redis }: NonNullable<Counting['shared']>, returned: () => void): void {
  const { changes } = redis;
  let wasSubscribed = false;
  changes.onReset(() => {
    if (changes.isSubscribed && wasSubscribed) returned();
    wasSubscribed ||= changes.isSubscribed;
  });
}

function prune(
  { platform }: ReplicaContext,
  { recordChanges }: Parts['records'],
  goesOn: () => boolean,
): Promise<boolean> {
  const pruneAll = async (): Promise<void> => {
    while (goesOn() && (await recordChanges.prune()) > 0);
  };
  return loggedRun(pruneAll, platform.log, 'old changes could not be removed; it is tried again');
}
