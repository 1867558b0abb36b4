import type { ServerResponse } from 'node:http';
import type { TollgateError } from '../errors.ts';
import { negotiatedError } from '../http/errors/problem-details.ts';
import { rejectAndClose } from '../http/errors/send-error.ts';
import { noteError } from '../http/with-request-id.ts';

/** Rejects a request of management or self-service whose body can't be read on, before its app has responded, and closes the connection. */
export function rejectServed(due: ServerResponse, error: TollgateError): void {
  noteError(due, error.code);
  rejectAndClose(due, negotiatedError(error, due.req));
}
