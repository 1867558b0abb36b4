import { type Policy, REGIONS, type World } from '../world.ts';

/** How often each region sends its count to the others. Milliseconds. */
const EVERY_MS = 100;

/** Every region counts for itself, and adds what it last heard of the others. */
export function gossip(world: World): Policy {
  const windows = REGIONS.map(() => ({ window: 0, used: 0, heard: REGIONS.map(() => 0) }));
  const currentOf = (region: number) => {
    const own = windows[region];
    if (own === undefined) throw new Error(`no region ${region}`);
    const window = world.windowOf(region);
    if (own.window !== window) Object.assign(own, { window, used: 0, heard: REGIONS.map(() => 0) });
    return own;
  };
  const tell = (region: number): void => {
    const { window, used } = currentOf(region);
    for (const other of REGIONS.keys()) {
      if (other === region) continue;
      world.send(region, other, () => {
        const their = currentOf(other);
        if (their.window === window) their.heard[region] = Math.max(their.heard[region] ?? 0, used);
      });
    }
    world.timeline.after(EVERY_MS, () => tell(region));
  };
  for (const region of REGIONS.keys()) tell(region);
  return {
    decide: (region, decided) => {
      const own = currentOf(region);
      const others = own.heard.reduce((sum, count) => sum + count, 0);
      const isAllowed = own.used + others < world.scenario.limit;
      if (isAllowed) own.used += 1;
      decided(isAllowed, own.window);
    },
  };
}
