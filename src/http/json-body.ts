import { isUtf8 } from 'node:buffer';
import { MIMEType } from 'node:util';
import type { Request, RequestHandler } from 'express';
import { InvalidBody, TollgateError } from '../errors.ts';
import { shownName } from '../platform/text/did-you-mean.ts';
import { EXACT_NUMBER_RULE, inexactNumberIn } from '../platform/text/exact-numbers.ts';
import { fieldName } from '../platform/text/field-name.ts';
import { type BodyBudget, bodyTooLarge } from './body-budget.ts';

/** The longest body that most endpoints read. Far more than any valid one. */
const BODY_LIMIT_BYTES = 64 * 1024;
/** Most levels of objects and lists. More than any valid body has: the metadata of a key may have 100. */
const MAX_LEVELS = 128;

/**
 * Reads a JSON body into `req.body`: `application/json` in UTF-8 without a content coding, at most `limitBytes` (64 KiB by default). The
 * value may have any JSON type, and at most 128 levels; a schema checks it later. `budget` bounds the large bodies of all requests.
 * Fails with `unsupported_media_type`, `body_too_large`, `overloaded` or `malformed_json`. An empty body is `malformed_json`, with another message. A
 * number that JavaScript would change is `invalid_body`: what is stored must be what was sent.
 */
export function jsonBody(budget: BodyBudget, limitBytes = BODY_LIMIT_BYTES): readonly RequestHandler[] {
  return [requireJson, rejectLarge(limitBytes), requireIdentity, inviteBody, readJson(budget, limitBytes)];
}

const requireJson: RequestHandler = (req, _res, next) => {
  // A request without a body has no media type to reject; `parse` says that the body is missing.
  const mayBeUntyped = req.headers['content-type'] === undefined && !announcesBody(req);
  if (!mayBeUntyped && !isJson(req.headers['content-type'])) {
    throw new TollgateError(
      'unsupported_media_type',
      'The body must be JSON in UTF-8: send "Content-Type: application/json".',
    );
  }
  next();
};

/** The budget would reject the body as well, but only after it has read all of it. */
function rejectLarge(limitBytes: number): RequestHandler {
  return (req, _res, next) => {
    if (Number(req.headers['content-length']) > limitBytes) throw bodyTooLarge(limitBytes);
    next();
  };
}

const requireIdentity: RequestHandler = (req, _res, next) => {
  const coding = req.headers['content-encoding'] ?? '';
  if (announcesBody(req) && !['', 'identity'].includes(coding.toLowerCase())) {
    throw new TollgateError(
      'unsupported_media_type',
      'The body must not be compressed: send it without Content-Encoding.',
    );
  }
  next();
};

/**
 * The server leaves `Expect: 100-continue` to this handler, so that a body is invited only when its head is valid. A client of HTTP/1.0 does not
 * know responses before the last one, and gets none (RFC 9110 section 10.1.1).
 */
const inviteBody: RequestHandler = (req, res, next) => {
  if (req.headers.expect !== undefined && req.httpVersionMinor === 1) res.writeContinue();
  next();
};

function readJson(budget: BodyBudget, limitBytes: number): RequestHandler {
  return async (req, res, next) => {
    const bytes = announcesBody(req) ? await budget.read(req, res, limitBytes) : Buffer.alloc(0);
    // The body was too slow, and the request was rejected before the end arrived: it must not be performed any more.
    if (res.headersSent) return;
    req.body = parse(bytes);
    next();
  };
}

function announcesBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function isJson(contentType: string | undefined): boolean {
  if (contentType === undefined) return false;
  try {
    const { essence, params } = new MIMEType(contentType);
    const charset = params.get('charset') ?? 'utf-8';
    return essence === 'application/json' && /^utf-?8$/i.test(charset);
  } catch {
    return false; // Not a media type at all.
  }
}

function parse(bytes: Buffer): unknown {
  if (bytes.length === 0) {
    throw new TollgateError('malformed_json', 'The request body is empty: send a JSON object.');
  }
  // Before it is parsed: to write such a value as text again takes a time that grows faster than its depth.
  if (isDeeper(bytes, MAX_LEVELS)) {
    throw new TollgateError(
      'malformed_json',
      `The request body has more than ${MAX_LEVELS} levels of objects and lists.`,
    );
  }
  // Decoding would silently replace invalid bytes, and the stored name would differ from the one that was sent.
  if (!isUtf8(bytes)) throw malformed();
  const text = bytes.toString();
  const value = parseText(text);
  const path = inexactNumberIn(text);
  if (path === undefined) return MINUS_ZERO.test(text) ? JSON.parse(JSON.stringify(value)) : value;
  const field = path.length === 0 ? 'body' : fieldName(path.map(shownName));
  throw new InvalidBody([{ field, message: EXACT_NUMBER_RULE }]);
}

/** Possibly a number: stored as 0, it would differ from what is sent again, and count as a change. */
const MINUS_ZERO = /-0(?:\.0+)?(?![.\d])/;

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, which may hold anything: it goes nowhere.
    throw malformed();
  }
}

function malformed(): TollgateError {
  return new TollgateError('malformed_json', 'The request body is not well-formed JSON.');
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** `{` and `[`, and `}` and `]`, differ in this bit only. */
const SQUARE_TO_CURLY = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Whether a JSON text has more levels of objects and lists than `levels`. */
function isDeeper(bytes: Buffer, levels: number): boolean {
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (isInString) {
      if (byte === BACKSLASH) at += 1;
      else isInString = byte !== QUOTE;
    } else if (byte === QUOTE) isInString = true;
    else if ((byte | SQUARE_TO_CURLY) === OPEN) {
      depth += 1;
      if (depth > levels) return true;
    } else if ((byte | SQUARE_TO_CURLY) === CLOSE) depth -= 1;
  }
  return false;
}
