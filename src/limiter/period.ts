/**
 * The length of a window. Fixed periods have a length in milliseconds; months and years follow the calendar
 * in UTC. Two periods are the same when their tokens are: `hour`, `60 minutes` and `PT1H` share one.
 */
export type Period =
  | { readonly kind: 'fixed'; readonly token: string; readonly lengthMs: number }
  | { readonly kind: 'calendar'; readonly token: string; readonly months: number };
