import type { Socket } from 'node:net';
import type { BackendConnection, ResponseHandler } from '../../../src/backend/connection.ts';
import type { BackendJob } from '../../../src/backend/pool/places.ts';
import type { ResponseHead } from '../../../src/backend/response-head.ts';
import { until } from '../../support/until.ts';

type Callback = 'begin' | keyof ResponseHandler;

/** A request to the backend that keeps all that it hears. */
export class RecordingJob implements BackendJob, ResponseHandler {
  readonly name: string;
  readonly calls: Callback[] = [];
  readonly errors: unknown[] = [];
  connection: BackendConnection | undefined;
  status = 0;
  body = '';
  readonly #method: string;
  readonly #isUpgrade: boolean;
  readonly #throwsIn: Callback | undefined;

  /** With `throwsIn` that callback throws. */
  constructor(
    name: string,
    {
      method = 'GET',
      isUpgrade = false,
      throwsIn,
    }: { method?: string; isUpgrade?: boolean; throwsIn?: Callback } = {},
  ) {
    this.name = name;
    this.#method = method;
    this.#isUpgrade = isUpgrade;
    this.#throwsIn = throwsIn;
  }

  begin(connection: BackendConnection): void {
    this.#note('begin');
    this.connection = connection;
    const head = `${this.#method} /${this.name} HTTP/1.1\r\nhost: backend\r\n\r\n`;
    connection.send({ method: this.#method, head, body: undefined, isUpgrade: this.#isUpgrade }, this);
  }

  onInterim(): void {
    this.#note('onInterim');
  }

  onHead({ status }: ResponseHead): void {
    this.status = status;
    this.#note('onHead');
  }

  onBody(chunk: Buffer): void {
    this.body += chunk.toString('latin1');
    this.#note('onBody');
  }

  onReadEnd(): void {
    this.#note('onReadEnd');
  }

  onComplete(): void {
    this.#note('onComplete');
  }

  onSwitched(_head: ResponseHead, socket: Socket): void {
    socket.destroy();
    this.#note('onSwitched');
  }

  onError(error: unknown): void {
    this.errors.push(error);
    this.#note('onError');
  }

  /** Resolves once the callback was called. */
  async heard(callback: Callback): Promise<void> {
    await until(() => this.calls.includes(callback));
  }

  #note(callback: Callback): void {
    this.calls.push(callback);
    if (callback === this.#throwsIn) throw new Error(`thrown in ${callback}`);
  }
}
