import { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { checkNodeInternals } from '../../src/http/node-internals.ts';

describe('the check of the undocumented parts of Node', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  it('passes on the version of Node that runs the tests', async () => {
    await checkNodeInternals();
  });

  it('fails when Node no longer keeps the response due on its socket', async () => {
    const assign = ServerResponse.prototype.assignSocket;
    jest.spyOn(ServerResponse.prototype, 'assignSocket').mockImplementation(function (
      this: ServerResponse,
      socket,
    ) {
      assign.call(this, socket);
      Reflect.set(socket, '_httpMessage', null);
    });
    await expect(checkNodeInternals()).rejects.toThrow(/Node [\d.]+ has changed .*_httpMessage/);
  });

  it('fails when Node writes heads in another way', async () => {
    jest.spyOn(ServerResponse.prototype, 'writeHead').mockImplementation(function (this: ServerResponse) {
      return this;
    });
    await expect(checkNodeInternals()).rejects.toThrow(/has changed/);
  });

  it('fails when Node sends a head that is in front of the body already', async () => {
    const { end } = ServerResponse.prototype;
    jest.spyOn(ServerResponse.prototype, 'end').mockImplementation(function (
      this: ServerResponse,
      chunk?: unknown,
    ) {
      Reflect.set(this, '_headerSent', false);
      return Reflect.apply(end, this, [chunk]);
    });
    await expect(checkNodeInternals()).rejects.toThrow(/has changed/);
  });
});
