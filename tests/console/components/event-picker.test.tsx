/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, describe, expect, it } from '@jest/globals';
import { cleanup, screen } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { useState } from 'react';
import { scopesOf } from '../../../src/console/pages/webhooks/event-choice.ts';
import { EventPicker } from '../../../src/console/pages/webhooks/event-picker.tsx';
import { scopesOf as scopesOfGateway } from '../../../src/events/event-patterns.ts';
import { EVENT_TYPES, TEST_TYPE } from '../../../src/events/event-types.ts';
import { SCOPES, type Scope } from '../../../src/permissions/scopes.ts';
import { axeFaults } from './support/axe-faults.ts';
import { renderSignedIn } from './support/stage.tsx';

afterEach(cleanup);

function Picker({ initial }: { readonly initial: readonly string[] }) {
  const [chosen, setChosen] = useState(initial);
  return (
    <>
      <EventPicker chosen={chosen} onChange={setChosen} error="Choose one." />
      <output>{chosen.join(' ')}</output>
    </>
  );
}

const show = (scopes: readonly Scope[], initial: readonly string[] = []) =>
  renderSignedIn(scopes, <Picker initial={initial} />);
const boxes = () => screen.getAllByRole('checkbox', { hidden: true });
const box = (name: RegExp) => screen.getByRole<HTMLInputElement>('checkbox', { name, hidden: true });
const chosen = () => screen.getByRole('status').textContent;

describe('the picker of events', () => {
  it('offers every type of the table, each with when it is sent', async () => {
    show(SCOPES);
    for (const [type, { when }] of Object.entries(EVENT_TYPES)) {
      if (type === TEST_TYPE) continue;
      const described = box(new RegExp(`^${RegExp.escape(type)}$`)).getAttribute('aria-describedby') ?? '';
      expect(document.getElementById(described)?.textContent).toBe(when);
    }
    expect(screen.queryByText(TEST_TYPE)).toBeNull();
    expect(await axeFaults()).toEqual([]);
  });

  it('hides what the token may not hear', () => {
    show(['webhooks:write', 'keys:read']);
    expect(box(/tollgate\.key\.created/)).toBeTruthy();
    expect(boxes().some((each) => each.closest('div')?.textContent?.includes('admin_token'))).toBe(false);
    expect(screen.queryByLabelText('Everything')).toBeNull();
  });

  it('takes the place of single types by what covers them', async () => {
    show(SCOPES, ['tollgate.key.created', 'tollgate.plan.updated', 'tollgate.key.r*']);
    const user = userEvent.setup();
    await user.click(box(/^All: tollgate\.key\.\*$/));
    expect(chosen()).toBe('tollgate.plan.updated tollgate.key.*');
    expect([box(/key\.deleted/).checked, box(/key\.deleted/).disabled]).toEqual([true, true]);
    await user.click(box(/^Everything$/));
    expect(chosen()).toBe('tollgate.*');
    await user.click(box(/^Everything$/));
    expect(chosen()).toBe('');
  });

  it('keeps a pattern that has no box, until it is taken away', async () => {
    show(SCOPES, ['tollgate.key.r*']);
    const user = userEvent.setup();
    await user.click(box(/plan\.created/));
    expect(chosen()).toBe('tollgate.key.r* tollgate.plan.created');
    await user.click(box(/key\.r\*/));
    expect(chosen()).toBe('tollgate.plan.created');
  });

  it('keeps a group open when its last type is cleared', async () => {
    show(SCOPES, ['tollgate.plan.created']);
    const group = box(/plan\.created/).closest('details');
    expect(group?.open).toBe(true);
    await userEvent.setup().click(box(/plan\.created/));
    expect([chosen(), group?.open]).toEqual(['', true]);
  });

  it('knows which scopes patterns need as the gateway does', () => {
    for (const patterns of [
      ['tollgate.*'],
      ['tollgate.key.*'],
      ['tollgate.w*', 'tollgate.plan.created'],
      ['*'],
    ])
      expect(scopesOf(patterns)).toEqual(scopesOfGateway(patterns));
  });
});
