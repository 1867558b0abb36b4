/** The host of a URL, or a `Host` field, that is this machine: its name, and perhaps a port. */
export const LOOPBACK_HOST = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/;
