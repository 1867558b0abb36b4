/**
 * How long the console, the portal and the `tollgate` command suggest that the previous secret stays valid. Seconds. The management
 * interface has no default: each request says it.
 */
export const SUGGESTED_GRACE_SECONDS = 86_400;
