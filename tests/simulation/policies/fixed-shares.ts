import { type Policy, REGIONS, shareOf, type World } from '../world.ts';

/** Every region has a third of the limit. */
export function fixedShares(world: World): Policy {
  const windows = REGIONS.map(() => ({ window: 0, used: 0 }));
  return {
    decide: (region, decided) => {
      const own = windows[region];
      if (own === undefined) throw new Error(`no region ${region}`);
      const window = world.windowOf(region);
      if (own.window !== window) Object.assign(own, { window, used: 0 });
      const isAllowed = own.used < shareOf(world.scenario.limit, region);
      if (isAllowed) own.used += 1;
      decided(isAllowed, window);
    },
  };
}
