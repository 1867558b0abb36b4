import { TestEnvironment } from 'jest-environment-jsdom';

class Unseen {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
}

/** A canvas's context that draws nothing: jsdom has none. */
function createDrawing(): object {
  const nothing = () => ({ width: 0 });
  return new Proxy({}, { get: (target, name) => Reflect.get(target, name) ?? nothing });
}

/**
 * jsdom with what it lacks of a browser: Node's `fetch` and streams, and observers of a layout that does not exist. The option `timeZone` sets
 * the time zone of the browser, and `setTimeZone` another one later; without them that of the machine applies.
 */
export default class BrowserEnvironment extends TestEnvironment {
  readonly #timeZone: unknown;
  readonly #timeZoneBefore = process.env.TZ;

  constructor(...[config, context]: ConstructorParameters<typeof TestEnvironment>) {
    super(config, context);
    this.#timeZone = config.projectConfig.testEnvironmentOptions.timeZone;
  }

  override async setup(): Promise<void> {
    if (typeof this.#timeZone === 'string') process.env.TZ = this.#timeZone;
    await super.setup();
    Object.assign(this.global, {
      fetch,
      Request,
      Response,
      Headers,
      AbortController,
      AbortSignal,
      ReadableStream,
      TextDecoder,
      IntersectionObserver: Unseen,
      ResizeObserver: Unseen,
      PointerEvent: this.global.MouseEvent,
      scrollTo: () => undefined,
      // Tests have a copy of `process.env`, which sets nothing.
      setTimeZone: (timeZone: string) => {
        process.env.TZ = timeZone;
      },
      matchMedia: () => Object.assign(new EventTarget(), { matches: false }),
    });
    Object.assign(this.global.Element.prototype, { scrollIntoView: () => undefined });
    Object.assign(this.global.HTMLCanvasElement.prototype, { getContext: createDrawing });
  }

  /** The next file may run in the same process. */
  override async teardown(): Promise<void> {
    await super.teardown();
    if (this.#timeZoneBefore === undefined) delete process.env.TZ;
    else process.env.TZ = this.#timeZoneBefore;
  }
}
