/** A token or key that fits in the header `Authorization` (RFC 6750 2.1), as all of the gateway do: others would make `fetch` fail. */
export const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;
