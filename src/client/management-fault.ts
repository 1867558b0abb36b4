/** A response that is not a success of the management interface. The message is the sentence that it has for people. */
export class ManagementFault extends Error {
  readonly status: number;
  /** The stable code of the error; empty where something else than the gateway responded. */
  readonly code: string;
  /** What is wrong with single fields of the body. */
  readonly fields: readonly { readonly field: string; readonly message: string }[];
  /** By which the gateway's log and audit log know the request. */
  readonly requestId: string | undefined;
  /** All members of the body, those of this error alone included; empty where it is no object. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(response: Response, body: unknown) {
    const details = isObject(body) ? body : {};
    super(
      typeof details.error === 'string'
        ? details.error
        : `The response has the status ${response.status} and is not one of Tollgate's management interface.`,
    );
    this.name = 'ManagementFault';
    this.status = response.status;
    this.code = typeof details.code === 'string' ? details.code : '';
    this.fields = Array.isArray(details.errors) ? details.errors.filter(isFieldFault) : [];
    this.requestId = response.headers.get('x-request-id') ?? undefined;
    this.details = details;
  }
}

/** A success whose body is not JSON: something on its way has cut it short or changed it. */
export class UnreadableBody extends Error {
  constructor(cause: SyntaxError) {
    super('The body of the response is not JSON, or only a part of it.', { cause });
    this.name = 'UnreadableBody';
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isFieldFault(value: unknown): value is { readonly field: string; readonly message: string } {
  return isObject(value) && typeof value.field === 'string' && typeof value.message === 'string';
}
