import { type Command, Option } from 'commander';
import { CommandFault } from '../../command-fault.ts';
import { seconds } from '../../option-values.ts';

/** How a command hands a new secret over. */
export interface HandoverOptions {
  /** Seconds. Undefined: the command shows the secret. */
  readonly handover?: number;
  readonly handoverNote?: string;
}

/** The link that a command has made in place of a secret. */
export interface HandoverLink {
  readonly handoverId: string;
  readonly url: string;
  readonly expiresAt: string;
}

/** Adds the options of a command that makes the secret of a key. */
export function mayHandOver(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--handover <time>',
        'make a link that shows the secret once, for as long as this (up to 7d), and show no secret',
      )
        .argParser(seconds)
        .conflicts('secretFile'),
    )
    .option('--handover-note <text>', 'what the page of the link says');
}

/** The field of the request's body. */
export function handoverField({ handover, handoverNote }: HandoverOptions): {
  readonly handover?: { readonly ttlSeconds: number; readonly note?: string };
} {
  if (handover !== undefined)
    return { handover: { ttlSeconds: handover, ...(handoverNote !== undefined && { note: handoverNote }) } };
  if (handoverNote !== undefined) throw new CommandFault('usage', '--handover-note needs --handover.');
  return {};
}
