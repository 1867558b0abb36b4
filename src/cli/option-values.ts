import { InvalidArgumentError, Option } from 'commander';
import { SUGGESTED_GRACE_SECONDS } from '../client/suggested-grace.ts';
import { systemClock } from '../platform/clock.ts';
import { isObject } from '../platform/is-object.ts';
import { EXACT_NUMBER_RULE, inexactNumberIn } from '../platform/text/exact-numbers.ts';
import { fieldName } from '../platform/text/field-name.ts';
import { parsedJson } from '../platform/text/parsed-json.ts';
import { CommandFault } from './command-fault.ts';

const WHOLE_NUMBER = /^\d{1,15}$/;

/** A whole number from 0. */
export function wholeNumber(text: string): number {
  if (WHOLE_NUMBER.test(text)) return Number(text);
  throw new InvalidArgumentError('It must be a whole number.');
}

/** A whole number within these bounds. */
export function wholeNumberFrom(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = Number(text);
    if (WHOLE_NUMBER.test(text) && number >= least && number <= most) return number;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

/** For an option that may be repeated. */
export function collect(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** A JSON object. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> {
  const value = parsedJson(text);
  if (!isObject(value)) throw new InvalidArgumentError('It must be a JSON object.');
  const inexact = inexactNumberIn(text);
  if (inexact !== undefined) throw new InvalidArgumentError(`${fieldName(inexact)} ${EXACT_NUMBER_RULE}.`);
  return value;
}

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** A duration like `90s`, `15m`, `12h`, `7d` or `2w` in milliseconds; undefined for anything else. */
function durationMs(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})([smhdw])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS];
}

/** A duration in whole seconds. */
export function seconds(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined) return ms / 1000;
  throw new InvalidArgumentError('It must be a length of time like 90s, 15m, 24h or 7d.');
}

/** `--grace`, which the interface demands: without it the command sends what the console suggests, too. */
export function graceOption(): Option {
  return new Option('--grace <time>', 'how long the previous secret stays valid: 1h, 24h, 7d, or 0s')
    .argParser(seconds)
    .default(SUGGESTED_GRACE_SECONDS, '24h');
}

/** An instant as the interface accepts it. A duration counts from now, into the past or the future; other text is unchanged. */
export function instant(text: string, direction: 'ago' | 'from now'): string {
  const ms = durationMs(text);
  if (ms === undefined) return text;
  const at = new Date(systemClock.nowMs() + (direction === 'ago' ? -ms : ms));
  if (Number.isNaN(at.getTime())) throw new CommandFault('usage', `${text} is too long.`);
  return `${at.toISOString().slice(0, 19)}Z`;
}
