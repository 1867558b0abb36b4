/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { describe, expect, it } from '@jest/globals';
import { screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import type { ReactElement } from 'react';
import { CreatePlan } from '../../../src/console/pages/plans/editor/create-plan.tsx';
import { EditPlan } from '../../../src/console/pages/plans/editor/edit-plan.tsx';
import { PLAN } from './support/records.ts';
import { withScriptedGateway } from './support/stage.tsx';

const gateway = withScriptedGateway();
const user = userEvent.setup();

const show = (editor: ReactElement) => gateway.render(['plans:write'], editor);
const press = (name: string) => user.click(screen.getByRole('button', { name }));
const field = (label: string) => screen.getByLabelText(label);
const untilFocused = (label: string) => waitFor(() => expect(document.activeElement).toBe(field(label)));

describe('the editor of a plan', () => {
  it('leads to the first field with a fault, also where the gateway finds it', async () => {
    show(<CreatePlan />);
    await press('Create plan');
    await untilFocused('Id');
    await user.type(field('Id'), 'gold');
    await press('Create plan');
    await untilFocused('Requests');
    await user.type(field('Requests'), '100');
    await user.type(field('In each'), 'day');
    gateway.reply(409, { error: 'It exists.', code: 'plan_exists' });
    await press('Create plan');
    await screen.findByText('There is a plan with this id already.');
    await untilFocused('Id');
  });

  it('leads to the first field with a fault before a change is reviewed', async () => {
    show(<EditPlan plan={PLAN} etag={'"1"'} onDone={() => undefined} />);
    await user.clear(field('In each'));
    await press('Review changes');
    await untilFocused('In each');
  });

  it('scrolls to the reason for which a plan was not made', async () => {
    const scrolledTo: (string | null)[] = [];
    Element.prototype.scrollIntoView = function scrollIntoView() {
      scrolledTo.push(this.textContent);
    };
    show(<CreatePlan />);
    for (const [label, text] of [
      ['Id', 'gold'],
      ['Requests', '100'],
      ['In each', 'day'],
    ] as const)
      await user.type(field(label), text);
    gateway.reply(503, { error: 'The database does not respond.', code: 'store_unavailable' });
    await press('Create plan');
    const reason = await screen.findByRole('alert');
    await waitFor(() => expect(scrolledTo).toEqual([reason.textContent]));
  });
});
