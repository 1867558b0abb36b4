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

/** jsdom with what it lacks of a browser: Node's `fetch` and streams, and observers of a layout that does not exist. */
export default class BrowserEnvironment extends TestEnvironment {
  override async setup(): Promise<void> {
    await super.setup();
    Object.assign(this.global, {
      fetch,
      Request,
      Response,
      Headers,
      AbortController,
      AbortSignal,
      ReadableStream,
      IntersectionObserver: Unseen,
      ResizeObserver: Unseen,
      PointerEvent: this.global.MouseEvent,
      scrollTo: () => undefined,
      matchMedia: () => Object.assign(new EventTarget(), { matches: false }),
    });
    Object.assign(this.global.HTMLCanvasElement.prototype, { getContext: createDrawing });
  }
}
