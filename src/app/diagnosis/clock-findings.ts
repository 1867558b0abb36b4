import { type Finding, findingsOf } from './finding.ts';

/** Clocks that NTP synchronizes differ by much less. */
const TOLERATED_MS = 1000;

/** Whether a store's clock agrees with this machine's: one decides when keys expire, the other when windows end. */
export function clockFindings(check: 'postgres' | 'redis', aheadMs: number): readonly Finding[] {
  const { ok, warning } = findingsOf(check);
  const seconds = Math.round(Math.abs(aheadMs) / 100) / 10;
  if (Math.abs(aheadMs) <= TOLERATED_MS) return [ok('Its clock agrees with that of this machine.')];
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  return [
    warning(
      `Its clock is ${seconds} s ${direction} that of this machine.`,
      'Have a time service (NTP) set the clocks of all machines: expiries and resets are instants.',
    ),
  ];
}
