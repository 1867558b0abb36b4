/** A rate limit plan: how many requests a key may make in one window. */
export interface Plan {
  /** Chosen by the caller, `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`. */
  readonly id: string;
  /** 0 … 1024 characters. */
  readonly description: string;
  /** 1 … 999 999 999 999 999 requests in one window. */
  readonly limit: number;
  /** The window's length as the caller wrote it; `parsePeriod` reads it. */
  readonly period: string;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
  /** Milliseconds since 1970; equals `createdAtMs` for a plan never changed. */
  readonly updatedAtMs: number;
  /** Grows by one with every change. */
  readonly version: number;
}

/** The plan that the migrations make, and that applies by default unless the settings say otherwise. */
export const SHIPPED_PLAN_ID = 'default';

const ID_SHAPE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Whether a text has the form of a plan id. */
export function isPlanId(text: string): boolean {
  return ID_SHAPE.test(text);
}
