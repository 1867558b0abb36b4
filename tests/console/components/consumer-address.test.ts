/** @jest-environment node */
import { describe, expect, it } from '@jest/globals';
import { consumerAddress } from '../../../src/console/api/consumer-address.ts';

describe('the address that the console shows for consumers', () => {
  it('is that of the console where one port is for both', () => {
    expect(consumerAddress('https://gw.example.com/tollgate/console/keys/key_1?tab=x#y', null)).toBe(
      'https://gw.example.com/',
    );
    expect(consumerAddress('http://[::1]:8080/tollgate/console', undefined)).toBe('http://[::1]:8080/');
  });

  it('has the public port where management has a separate one', () => {
    expect(consumerAddress('http://localhost:8081/tollgate/console/', 8080)).toBe('http://localhost:8080/');
    expect(consumerAddress('http://[::1]:8081/', 8080)).toBe('http://[::1]:8080/');
  });
});
