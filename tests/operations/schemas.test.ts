import { describe, expect, it } from '@jest/globals';
import { faultsOf } from './kubernetes-schemas.ts';

const sound = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'a', labels: { any: 'label' } },
  spec: { maxUnavailable: 1, selector: { matchLabels: { any: 'label' } } },
};

describe('the check against the Kubernetes schemas', () => {
  it('passes an object that meets the schema', () => {
    expect(faultsOf(sound)).toEqual([]);
  });

  it('names a field that the schema does not know, however deep', () => {
    const misspelt = { ...sound, spec: { ...sound.spec, selector: { matchLabel: { any: 'label' } } } };
    expect(faultsOf(misspelt)).toEqual(['has an unknown field spec/selector/matchLabel', expect.any(String)]);
    expect(faultsOf({ ...sound, metdata: {} })).toEqual(['has an unknown field metdata']);
  });

  it('names a value of another type, and a field that is missing', () => {
    expect(faultsOf({ ...sound, spec: { maxUnavailable: true } })).toEqual([
      expect.stringContaining('maxUnavailable must be'),
    ]);
    expect(
      faultsOf({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a' }, spec: {} }),
    ).toEqual([expect.stringContaining('selector')]);
  });

  it('does not pass a kind that it has no schema for', () => {
    expect(faultsOf({ ...sound, kind: 'PodDisruptionBudgets' })).toEqual([
      'has no schema: policy/v1 PodDisruptionBudgets',
    ]);
  });
});
