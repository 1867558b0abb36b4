import { describe, expect, it } from '@jest/globals';
import { ConnectionLimit } from '../../src/server/connection-limit.ts';

describe('the limit of connections', () => {
  it('lets as many be open as it says, and counts those that are rejected', () => {
    const limit = new ConnectionLimit(2);
    expect([limit.mayOpen(), limit.mayOpen(), limit.mayOpen(), limit.mayOpen()]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect([limit.open, limit.rejected]).toEqual([2, 2]);
    limit.close();
    expect(limit.mayOpen()).toBe(true);
  });

  it('tells once that it is full, and once that a tenth is free again', () => {
    const told: boolean[] = [];
    const limit = new ConnectionLimit(20, (isFull) => told.push(isFull));
    for (let i = 0; i < 20; i += 1) limit.mayOpen();
    expect(told).toEqual([]);
    limit.mayOpen();
    limit.mayOpen();
    limit.close();
    limit.mayOpen();
    limit.mayOpen();
    expect(told).toEqual([true]);
    limit.close();
    expect(told).toEqual([true]);
    limit.close();
    expect(told).toEqual([true, false]);
    limit.close();
    expect(told).toEqual([true, false]);
  });
});
