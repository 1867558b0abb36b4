/** @jest-environment node */
import { expect, it } from '@jest/globals';
import { MAX_COSTS } from '../../../src/console/pages/plans/editor/costs-panel.tsx';
import { MAX_LIMITS } from '../../../src/console/pages/plans/editor/limits-panel.tsx';
import { MAX_PATTERNS } from '../../../src/console/pages/plans/editor/pattern-fields.tsx';
import * as gateway from '../../../src/management/plans/plan-schema.ts';

it('the editor of a plan has the bounds of the gateway', () => {
  expect({ MAX_COSTS, MAX_LIMITS, MAX_PATTERNS }).toEqual({
    MAX_COSTS: gateway.MAX_COSTS,
    MAX_LIMITS: gateway.MAX_ADDITIONAL_LIMITS,
    MAX_PATTERNS: gateway.MAX_PATTERNS,
  });
});
