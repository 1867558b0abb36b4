/** Longest head, in bytes: request line and all headers. */
export const REQUEST_HEAD_LIMIT_BYTES = 16 * 1024;
/** Longest request target, in bytes. */
export const TARGET_LIMIT_BYTES = 8 * 1024;
/** Most headers of a request. */
export const MAX_HEADERS = 200;
