/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, describe, expect, it } from '@jest/globals';
import { cleanup, screen, waitFor } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { type ReactNode, useState } from 'react';
import type { Live } from '../../../src/console/api/live.ts';
import { Dialog } from '../../../src/console/components/layout/dialog.tsx';
import { LiveState } from '../../../src/console/components/states/live-state.tsx';
import { CostsPanel, MAX_COSTS } from '../../../src/console/pages/plans/editor/costs-panel.tsx';
import { FormEntry } from '../../../src/console/pages/plans/editor/form-entry.tsx';
import { LimitsPanel, MAX_LIMITS } from '../../../src/console/pages/plans/editor/limits-panel.tsx';
import { MAX_PATTERNS, PatternList } from '../../../src/console/pages/plans/editor/pattern-fields.tsx';
import {
  EMPTY_COST,
  EMPTY_LIMIT,
  EMPTY_PATTERN,
  EMPTY_PLAN,
  type PatternDraft,
  type PlanDraft,
  termsOf,
} from '../../../src/console/pages/plans/editor/plan-draft.ts';
import { Conflict, type Version } from '../../../src/console/pages/plans/editor/plan-versions.tsx';
import { HeaderFields } from '../../../src/console/pages/webhooks/header-fields.tsx';
import type { HeaderDraft } from '../../../src/console/pages/webhooks/webhook-draft.ts';
import { PLAN } from './support/records.ts';
import { renderSignedIn } from './support/stage.tsx';

const user = userEvent.setup();
afterEach(cleanup);

function show(part: ReactNode): void {
  renderSignedIn([], <main tabIndex={-1}>{part}</main>);
}

function Keys({ before }: { readonly before: string | undefined }) {
  const [isRead, setRead] = useState(false);
  const live: Live<string> = {
    status: isRead ? 'ready' : 'unavailable',
    data: isRead ? 'Keys' : before,
    dataAt: Date.now(),
    ...{ etag: undefined, error: undefined, requiredScope: undefined },
    refresh: () => setRead(true),
  };
  return (
    <LiveState live={live} what="keys" skeleton={null}>
      {(keys) => keys}
    </LiveState>
  );
}

function Entries() {
  const [isThere, setThere] = useState(true);
  return (
    isThere && (
      <FormEntry title="Cost 1" onRemove={() => setThere(false)}>
        A cost
      </FormEntry>
    )
  );
}

function Versions() {
  const [theirs, setTheirs] = useState<Version>();
  const nothing = () => undefined;
  return (
    <Conflict
      {...{ base: termsOf(PLAN), yours: termsOf(PLAN), theirs }}
      {...{ onTakeTheirs: nothing, onSaveYours: nothing, onClose: nothing }}
      onRead={() => setTheirs({ plan: PLAN, etag: '"2"' })}
    />
  );
}

function Trial() {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Try…
      </button>
      {isOpen && (
        <Dialog title="Try it" onClose={() => setOpen(false)}>
          A trial
        </Dialog>
      )}
    </>
  );
}

/** The form of a plan with as many limits and costs as there may be, but for one. */
function PlanParts() {
  const [draft, setDraft] = useState<PlanDraft>({
    ...EMPTY_PLAN,
    additionalLimits: Array.from({ length: MAX_LIMITS - 1 }, () => EMPTY_LIMIT),
    costs: Array.from({ length: MAX_COSTS - 1 }, () => EMPTY_COST),
  });
  const part = { draft, set: (change: Partial<PlanDraft>) => setDraft({ ...draft, ...change }), faults: {} };
  return (
    <>
      <LimitsPanel {...part} />
      <CostsPanel {...part} />
    </>
  );
}

function Patterns() {
  const [patterns, setPatterns] = useState<readonly PatternDraft[]>(
    Array.from({ length: MAX_PATTERNS - 1 }, () => EMPTY_PATTERN),
  );
  return <PatternList patterns={patterns} onChange={setPatterns} field="match" faults={{}} />;
}

function Headers() {
  const [headers, setHeaders] = useState<readonly HeaderDraft[] | undefined>(
    Array.from({ length: 9 }, () => ({ name: '', value: '' })),
  );
  return <HeaderFields headers={headers} present={[]} onChange={setHeaders} error={undefined} />;
}

/** As the review of a plan, which gives way to another dialog if the plan has changed meanwhile. */
function Replaced() {
  const [state, setState] = useState<'form' | 'first' | 'saving' | 'second'>('form');
  const close = () => setState('form');
  return (
    <>
      <button type="button" onClick={() => setState('first')}>
        Review…
      </button>
      {(state === 'first' || state === 'saving') && (
        <Dialog key="first" title="Review" onClose={close}>
          <button
            type="button"
            disabled={state === 'saving'}
            onClick={({ currentTarget }) => {
              // As a browser does with a button that is disabled while it has the focus.
              currentTarget.blur();
              setState('saving');
            }}
          >
            Save
          </button>
          <button type="button" onClick={() => setState('second')}>
            Fail
          </button>
        </Dialog>
      )}
      {state === 'second' && (
        <Dialog key="second" title="Conflict" onClose={close}>
          A conflict
        </Dialog>
      )}
    </>
  );
}

function Deletion() {
  const [state, setState] = useState<'listed' | 'asked' | 'gone'>('listed');
  return (
    <>
      {state !== 'gone' && (
        <button type="button" onClick={() => setState('asked')}>
          Delete…
        </button>
      )}
      {state === 'asked' && (
        <Dialog title="Delete it?" onClose={() => setState('listed')}>
          <button type="button" onClick={() => setState('gone')}>
            Delete
          </button>
        </Dialog>
      )}
    </>
  );
}

describe('a button that goes away when it is pressed', () => {
  it.each([
    ['that reads what was not read', 'Try again', <Keys key="none" before={undefined} />],
    ['that reads again what is old', 'Try again', <Keys key="old" before="Old keys" />],
    ['that removes a part of a form', 'Remove Cost 1', <Entries key="entries" />],
  ])('gives its focus to the page around it: one %s', async (_which, name, part) => {
    show(part);
    await user.click(screen.getByRole('button', { name }));
    expect(screen.queryByRole('button')).toBeNull();
    expect(document.activeElement).toBe(screen.getByRole('main'));
  });

  it.each([
    ['Add limit', PlanParts],
    ['Add cost', PlanParts],
    ['Add pattern', Patterns],
    ['Add header', Headers],
  ])(
    'gives its focus to the page around it: “%s”, with the last one that there may be',
    async (name, Part) => {
      show(<Part />);
      await user.click(screen.getByRole('button', { name }));
      expect(screen.queryByRole('button', { name })).toBeNull();
      expect(document.activeElement).toBe(screen.getByRole('main'));
    },
  );

  it('gives its focus to the dialog around it', async () => {
    show(<Versions />);
    await user.click(screen.getByRole('button', { name: 'Show both versions' }));
    expect(screen.getByRole('button', { name: 'Take theirs' })).toBeTruthy();
    expect(document.activeElement).toBe(screen.getByRole('dialog'));
  });
});

it('a dialog gives the focus to the page if the button that opened it has gone, also after another dialog', async () => {
  show(
    <>
      <Trial />
      <Deletion />
    </>,
  );
  await user.click(screen.getByRole('button', { name: 'Try…' }));
  await user.click(await screen.findByRole('button', { name: 'Close' }));
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Try…' })));
  await user.click(screen.getByRole('button', { name: 'Delete…' }));
  await user.click(await screen.findByRole('button', { name: 'Delete' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('main')));
});

it.each(['Save', 'Fail'])(
  'a dialog in place of another one, after %s, gives the focus to the button that opened that',
  async (name) => {
    show(<Replaced />);
    await user.click(screen.getByRole('button', { name: 'Review…' }));
    await user.click(await screen.findByRole('button', { name }));
    if (name === 'Save') screen.getByRole('button', { name: 'Fail' }).click();
    await screen.findByText('A conflict');
    await user.click(screen.getByRole('button', { name: 'Close' }));
    await waitFor(() => expect(document.activeElement).toBe(screen.getByRole('button', { name: 'Review…' })));
  },
);
