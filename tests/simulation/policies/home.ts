import type { Decided, Policy, World } from '../world.ts';

const HOME = 0;
/** After which a request is rejected, because the home does not respond. Milliseconds. */
const TIMEOUT_MS = 1000;

/** Every region asks one region, which counts. Exact, for a round trip with each request. */
export function homePolicy(world: World): Policy {
  let [window, used] = [0, 0];
  const count = (): boolean => {
    const current = world.windowOf(HOME);
    if (current !== window) [window, used] = [current, 0];
    if (used >= world.scenario.limit) return false;
    used += 1;
    return true;
  };
  return {
    decide: (region, decided) => {
      let isOver = false;
      const end: Decided = (isAllowed, countedIn) => {
        if (!isOver) decided(isAllowed, countedIn);
        isOver = true;
      };
      world.timeline.after(TIMEOUT_MS, () => end(false, world.windowOf(region)));
      world.send(region, HOME, () => {
        const isAllowed = count();
        const countedIn = window;
        world.send(HOME, region, () => end(isAllowed, countedIn));
      });
    },
  };
}
