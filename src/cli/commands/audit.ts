import { setTimeout as pause } from 'node:timers/promises';
import { pagesOf as allPages } from '../../client/list-pages.ts';
import type { components, paths } from '../../client/management-api.ts';
import { bodyOf } from '../../client/management-client.ts';
import { untilRead } from '../api/follow-events.ts';
import { type PageOptions, paged, pagesOf } from '../api/pages.ts';
import { readObject } from '../api/read-object.ts';
import { managed, type Session } from '../api/session.ts';
import { CommandFault } from '../command-fault.ts';
import type { Declare } from '../declare.ts';
import { instant } from '../option-values.ts';
import type { Listing } from '../output/columns.ts';

type Entry =
  paths['/tollgate/audit-log']['get']['responses'][200]['content']['application/json']['entries'][number];
type Query = NonNullable<paths['/tollgate/audit-log']['get']['parameters']['query']>;

interface AuditOptions extends PageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly action?: string;
  readonly actor?: string;
  readonly target?: string;
  readonly follow?: boolean;
}

/** The pause between two queries for new entries. */
const FOLLOW_MS = 2000;

export const declareAudit: Declare = (audit, terminal) => {
  const list = paged(
    audit
      .description('Shows who changed what, when, from where and why, newest first.')
      .option('--from <when>', 'entries from then on: an instant in UTC, or how long ago: 7d, 12h')
      .option('--to <when>', 'entries before then')
      .option('--action <action>', 'only this, like key.delete')
      .option('--actor <id>', 'only what this token did, or root')
      .option('--target <id>', 'only what was done to this key, plan or token')
      .option('--follow', 'go on and show new entries as they come, oldest first'),
  ).addHelpText(
    'after',
    `
Examples:
  tollgate audit --from 7d --action key.delete
  tollgate audit --target key_01KGH3V6ZQ5T8M2N4P6R8S0T2V --all -o csv > audit.csv
  tollgate audit --follow -o ndjson | jq -r '.actor.name + " " + .action'
  tollgate audit verify`,
  );
  managed<AuditOptions>(list, terminal, async (session, _words, options) => {
    if (options.follow) return follow(session, options);
    const query = queryOf(options);
    const pages = pagesOf(options, session.output, async (page) => {
      const { entries, nextCursor } = await read(session, { ...query, ...page });
      return { items: entries, nextCursor, span: query };
    });
    await session.output.list(ENTRIES, pages);
  });

  const verify = audit
    .command('verify')
    .summary('Check that no entry was changed or taken out')
    .description(
      'Follows the chain of all entries, and checks that it continues what an earlier run printed. The exit code is 0 when it is whole. It is 1 when it is not, and the output then has "valid": false; without that, the log could not be verified.',
    )
    .option('--expect <file>', 'what an earlier run printed with -o json; - for standard input')
    .addHelpText(
      'after',
      `
Examples:
  tollgate audit verify
  tollgate audit verify -o json | jq -e 'select(.valid | not)' && echo "the audit log was changed"
  tollgate audit verify -o json > head.json
  tollgate audit verify --expect head.json`,
    );
  managed<VerifyOptions>(verify, terminal, async ({ patientClient, output }, _words, { expect }) => {
    const query = expect === undefined ? {} : await expectedHead(expect);
    const result = await bodyOf(patientClient.GET('/tollgate/audit-log/verify', { params: { query } }));
    await output.item(VERIFICATION, result);
    if (!result.valid)
      throw new CommandFault('fault', result.expectation ? FAULTS[result.expectation] : FAULTS.broken);
  });
};

interface VerifyOptions {
  readonly expect?: string;
}

const FAULTS = {
  met: 'The audit log was changed outside of Tollgate.',
  broken:
    'The audit log was changed outside of Tollgate, or ENCRYPTION_KEY lacks a key that it was written under.',
  other_hash: 'The audit log was rewritten: the expected entry has another hash.',
  cut_off: 'The audit log was cut off: it ends before the expected entry.',
  expired:
    'The chain is whole, but the expected entry was removed for its age. Compare with a younger one, or start over without --expect.',
} as const;

/** The head in the file that an earlier run has written. */
async function expectedHead(file: string) {
  const { valid, count, lastHash } = await readObject(file);
  if (valid === true && typeof count === 'number' && typeof lastHash === 'string')
    return { expectCount: count, expectHash: lastHash };
  throw new CommandFault(
    'usage',
    `${file} is not what "tollgate audit verify -o json" prints for a log that is valid.`,
  );
}

/** Writes new entries as they come, until the process is stopped. Throws if the first read fails. */
async function follow(session: Session, options: AuditOptions): Promise<void> {
  const { from, ...query } = queryOf(options);
  const readAfter = (after: string) => {
    const since = after === '' && from !== undefined ? { ...query, from } : query;
    return entriesAfter(after, session, since);
  };
  // Older entries are shown only with --from.
  let last = from === undefined ? await newestId(session, query) : '';
  let entries = await readAfter(last);
  session.output.csvHeader(ENTRIES);
  for (;;) {
    for (const entry of entries) session.output.record(ENTRIES, entry);
    last = entries.at(-1)?.auditId ?? last;
    await pause(FOLLOW_MS);
    entries = await untilRead('The audit log', () => readAfter(last), session);
  }
}

/** Of the newest entry; empty where there is none. */
async function newestId(session: Session, query: Query): Promise<string> {
  const { entries } = await read(session, { ...query, limit: 1 });
  return entries[0]?.auditId ?? '';
}

/** The entries that were written after one, oldest first, whatever number of pages they take. Ids sort in the order of the log. */
async function entriesAfter(last: string, session: Session, query: Query): Promise<readonly Entry[]> {
  const newestFirst: Entry[] = [];
  // A cursor names an entry: what is written meanwhile comes before it, and moves nothing to another page.
  for await (const { entries } of allPages((cursor) => read(session, { ...query, ...cursor }))) {
    const added = entries.filter(({ auditId }) => auditId > last);
    newestFirst.push(...added);
    if (added.length < entries.length) break;
  }
  return newestFirst.toReversed();
}

function queryOf({ from, to, action, actor, target }: AuditOptions): Query {
  return {
    ...(from !== undefined && { from: instant(from, 'ago') }),
    ...(to !== undefined && { to: instant(to, 'ago') }),
    // The gateway checks the action, and lists the known ones if it is unknown.
    ...(action !== undefined && { action: action as NonNullable<Query['action']> }),
    ...(actor !== undefined && { actorId: actor }),
    ...(target !== undefined && { targetId: target }),
  };
}

async function read({ client }: Session, query: Query) {
  const page = await bodyOf(client.GET('/tollgate/audit-log', { params: { query } }));
  if (typeof page === 'string') throw new TypeError('the gateway sent CSV, which was not asked for');
  return page;
}

const ENTRIES: Listing<Entry> = {
  columns: [
    { name: 'at', toCell: ({ at }) => at },
    { name: 'action', toCell: ({ action }) => action },
    { name: 'target', toCell: ({ target }) => target.name ?? target.id },
    { name: 'actor', toCell: ({ actor }) => actorText(actor) },
    { name: 'outcome', toCell: ({ outcome }) => outcome },
    { name: 'reason', toCell: ({ reason }) => reason },
    { name: 'address', toCell: ({ address }) => address },
    { name: 'changes', toCell: ({ changes }) => Object.keys(changes).join(' ') },
    { name: 'actor type', heading: 'type', toCell: ({ actor }) => actor.type },
  ],
  idOf: ({ auditId }) => auditId,
};

/** The name, which others may have as well, and by what the identity provider knows a person or a program. */
function actorText({ name, email, subject }: Entry['actor']): string {
  const known = email ?? subject;
  return known === undefined || known === name ? name : `${name} <${known}>`;
}

const VERIFICATION: Listing<components['schemas']['VerifyAuditLogResponse']> = {
  columns: [
    { name: 'valid', toCell: ({ valid }) => valid },
    { name: 'entries', toCell: ({ entries }) => entries },
    { name: 'count', toCell: ({ count }) => count },
    { name: 'last at', toCell: ({ lastAt }) => lastAt },
    { name: 'problem', toCell: ({ problem }) => problem },
    { name: 'first broken', toCell: ({ firstBroken }) => firstBroken },
    { name: 'expectation', toCell: ({ expectation }) => expectation },
  ],
  idOf: ({ firstBroken }) => firstBroken ?? '',
};
