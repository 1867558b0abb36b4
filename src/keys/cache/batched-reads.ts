import { RoundRobinQueue } from './round-robin-queue.ts';

/** What is read, and when. */
export interface BatchedReadsOptions<Question, Answer> {
  /**
   * Responds to at most a hundred questions with one query, in their order: an answer, undefined for nothing found, or an error that
   * concerns one question alone.
   */
  readonly query: (questions: readonly Question[]) => Promise<readonly (Answer | Error | undefined)[]>;
  /** Whether queries are paced after one that gave these answers. */
  readonly isPacedAfter: (answers: readonly (Answer | Error | undefined)[]) => boolean;
  /** Queries that run together. */
  readonly maxRunning: number;
}

/** Questions in one query. */
const BATCH = 100;
/** While queries are paced, the time from the start of one to the start of the next. Milliseconds. */
const PACE_MS = 10;

interface ReadOptions {
  /** Questions of different groups take turns. */
  readonly group?: string;
  /** Called when the query begins. */
  readonly begun?: () => void;
}

interface Waiting<Question, Answer> extends PromiseWithResolvers<Answer | undefined> {
  readonly question: Question;
  readonly begun: (() => void) | undefined;
}

/**
 * Batch loader: questions that arrive while queries run, or are paced, go into the next query. When a query fails, all that wait fail with
 * it. The caller bounds how many wait.
 */
export class BatchedReads<Question, Answer> {
  readonly #options: BatchedReadsOptions<Question, Answer>;
  readonly #waiting = new RoundRobinQueue<Waiting<Question, Answer>>();
  #running = 0;
  /** As the last query that ended has it. */
  #isPaced = false;
  #isPaused = false;

  constructor(options: BatchedReadsOptions<Question, Answer>) {
    this.#options = options;
  }

  /** Questions of a group that wait. */
  waitingOf(group: string): number {
    return this.#waiting.sizeOf(group);
  }

  /** The answer of a query that begins after this call. */
  read(question: Question, { group = '', begun }: ReadOptions = {}): Promise<Answer | undefined> {
    const waiting = { question, begun, ...Promise.withResolvers<Answer | undefined>() };
    this.#waiting.push(group, waiting);
    this.#startNext();
    return waiting.promise;
  }

  #startNext(): void {
    while (this.#waiting.size > 0 && this.#running < this.#options.maxRunning && !this.#isPaused) {
      if (this.#isPaced) this.#pause();
      void this.#run(this.#waiting.take(BATCH));
    }
  }

  #pause(): void {
    this.#isPaused = true;
    setTimeout(() => {
      this.#isPaused = false;
      this.#startNext();
    }, PACE_MS);
  }

  async #run(batch: readonly Waiting<Question, Answer>[]): Promise<void> {
    this.#running += 1;
    for (const { begun } of batch) begun?.();
    try {
      const answers = await this.#options.query(batch.map(({ question }) => question));
      for (const [index, { resolve, reject }] of batch.entries()) {
        const answer = answers[index];
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      }
      this.#isPaced = this.#options.isPacedAfter(answers);
    } catch (error) {
      // The store does not respond: all that wait for the next query fail now too.
      for (const { reject } of [...batch, ...this.#waiting.take(Infinity)]) reject(error);
    } finally {
      this.#running -= 1;
      this.#startNext();
    }
  }
}
