import type { Command } from 'commander';
import { type EventQuery, followEvents } from '../api/follow-events.ts';
import { connected, openSession, type SessionOptions } from '../api/session.ts';
import type { Declare } from '../declare.ts';

/** Options that select events. */
export interface EventOptions {
  readonly type?: string;
  readonly subject?: string;
}

export const declareEvents: Declare = (events, terminal) => {
  const follow = selectingEvents(
    events
      .description(
        'Prints events as they happen, one CloudEvent as JSON a line, until Ctrl-C. It goes on where it was after a connection that breaks.',
      )
      .requiredOption('--follow', 'print events from now on'),
  ).addHelpText(
    'after',
    `
Examples:
  tollgate events --follow
  tollgate events --follow --type 'tollgate.key.*' | jq -r '.type + " " + .subject'`,
  );
  connected(follow).action(async (options: EventOptions & SessionOptions) => {
    const session = await openSession({ ...options, output: 'ndjson', headers: false }, terminal);
    for await (const event of followEvents(session, eventQueryOf(options), options))
      session.output.record(ANY, JSON.parse(event));
  });
};

/** Adds the options that select events. */
export function selectingEvents(command: Command): Command {
  return command
    .option(
      '--type <type>',
      'only events of this type; * at the end: of all types that begin so; several with commas',
    )
    .option('--subject <subject>', 'only events about this subject: the id of a key, a plan, …');
}

export function eventQueryOf({ type, subject }: EventOptions): EventQuery {
  return { ...(type !== undefined && { type }), ...(subject !== undefined && { subject }) };
}

/** Only written as JSON. */
const ANY = { columns: [], idOf: () => '' };
