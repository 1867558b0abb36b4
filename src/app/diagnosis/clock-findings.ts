import { type Finding, ok, warning } from './finding.ts';

/** Clocks that NTP synchronizes differ by much less. */
const TOLERATED_MS = 1000;

/** Whether a store's clock agrees with this machine's: one decides when keys expire, the other when windows end. */
export function clockFindings(check: 'postgres' | 'redis', aheadMs: number): readonly Finding[] {
  const seconds = Math.round(Math.abs(aheadMs) / 100) / 10;
  if (Math.abs(aheadMs) <= TOLERATED_MS) return [ok(check, 'Its clock agrees with that of this machine.')];
  const direction = aheadMs > 0 ? 'ahead of' : 'behind';
  return [
    warning(
      check,
      `Its clock is ${seconds} s ${direction} that of this machine.`,
      'Have a time service (NTP) set the clocks of all machines: expiries and resets are instants.',
    ),
  ];
}
