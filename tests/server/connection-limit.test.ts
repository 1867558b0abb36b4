import { describe, expect, it } from '@jest/globals';
import { ConnectionLimit } from '../../src/server/connections/connection-limit.ts';

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

  it('says once that new ones are rejected, and once that a tenth is free again', () => {
    const said: string[] = [];
    const limit = new ConnectionLimit(20, (pressure) => said.push(pressure));
    for (let i = 0; i < 20; i += 1) limit.mayOpen();
    expect(said).toEqual([]);
    limit.mayOpen();
    limit.mayOpen();
    limit.close();
    limit.mayOpen();
    limit.mayOpen();
    expect(said).toEqual(['rejecting']);
    limit.close();
    expect(said).toEqual(['rejecting']);
    limit.close();
    expect(said).toEqual(['rejecting', 'none']);
    limit.close();
    expect(said).toEqual(['rejecting', 'none']);
  });

  it('says once that idle ones are closed for new ones, unless new ones are rejected', () => {
    const said: string[] = [];
    const limit = new ConnectionLimit(20, (pressure) => said.push(pressure));
    for (let i = 0; i < 20; i += 1) limit.mayOpen();
    limit.noteEviction();
    limit.noteEviction();
    limit.mayOpen();
    limit.noteEviction();
    expect(said).toEqual(['evicting', 'rejecting']);
    expect(limit.evicted).toBe(3);
  });
});
