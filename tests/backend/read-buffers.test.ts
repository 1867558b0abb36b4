import { describe, expect, it } from '@jest/globals';
import { ReadBuffers } from '../../src/backend/read-buffers.ts';

describe('a buffer that connections read into', () => {
  it('is used again once all who need what is in it have released it', () => {
    const buffers = new ReadBuffers();
    const buffer = buffers.take();
    buffer.retain();
    buffer.retain();
    buffer.release();
    buffer.release(null);
    expect(buffers.take()).not.toBe(buffer);

    buffer.release();
    expect(buffers.take()).toBe(buffer);
    expect(buffers.made).toBe(2);
  });

  it('is never used again after a write of it that failed', () => {
    const buffers = new ReadBuffers();
    const buffer = buffers.take();
    buffer.retain();
    buffer.release(new Error('the connection is closed'));
    buffer.release();

    expect(buffers.take()).not.toBe(buffer);
  });

  it('is not kept beyond what a few responses at once need', () => {
    const buffers = new ReadBuffers();
    const many = Array.from({ length: 1000 }, () => buffers.take());
    for (const buffer of many) buffer.release();
    const again = new Set(Array.from({ length: 1000 }, () => buffers.take()));

    expect(many.filter((buffer) => again.has(buffer)).length).toBe(64);
  });
});
