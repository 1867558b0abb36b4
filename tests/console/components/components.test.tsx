/** @jest-environment ./tests/console/components/support/browser-environment.ts */
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { act, cleanup, render, screen, waitFor, within } from '@testing-library/react';
import { userEvent } from '@testing-library/user-event';
import { type ReactNode, useState } from 'react';
import { Chart } from '../../../src/console/components/charts/chart.tsx';
import { WindowBar } from '../../../src/console/components/charts/window-bar.tsx';
import { Button } from '../../../src/console/components/forms/button.tsx';
import { Form } from '../../../src/console/components/forms/form.tsx';
import { Menu } from '../../../src/console/components/forms/menu.tsx';
import { Dialog } from '../../../src/console/components/layout/dialog.tsx';
import { ToastRegion, toast } from '../../../src/console/components/states/toast.tsx';
import { EndTime, RelativeTime } from '../../../src/console/components/text/relative-time.tsx';
import { StatusBadge } from '../../../src/console/components/text/status-badge.tsx';
import { localTimeZone } from '../../../src/console/format/exact-time.ts';
import { axeFaults } from './support/axe-faults.ts';
import { renderSignedIn } from './support/stage.tsx';

afterEach(cleanup);

function Opener({ children = <Button>Go on</Button> }: { readonly children?: ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Rotate</Button>
      {open && (
        <Dialog onClose={() => setOpen(false)} title="Rotate this key" description="It gets a new secret.">
          {children}
        </Dialog>
      )}
    </>
  );
}

describe('components of the console', () => {
  it('give the focus back after a dialog that Escape closes', async () => {
    renderSignedIn([], <Opener />);
    const user = userEvent.setup();
    await user.click(screen.getByRole('button', { name: 'Rotate' }));
    const dialog = await screen.findByRole('dialog', { name: 'Rotate this key' });
    await waitFor(() => expect(dialog.contains(document.activeElement)).toBe(true));
    expect(await axeFaults()).toEqual([]);
    await user.keyboard('{Escape}');
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
    await waitFor(() => expect(document.activeElement?.textContent).toBe('Rotate'));
  });

  it('keep a dialog open that shows something only once', async () => {
    let closed = 0;
    renderSignedIn(
      [],
      <Dialog onClose={() => closed++} title="The secret" dismissible={false}>
        <Button>I have copied it</Button>
      </Dialog>,
    );
    await userEvent.setup().keyboard('{Escape}');
    expect(closed).toBe(0);
    expect(screen.queryByRole('button', { name: 'Close' })).toBeNull();
  });

  it('close a dialog with a click beside it, but not one with a form', async () => {
    const user = userEvent.setup();
    const clickBeside = async () => {
      await user.click(screen.getByRole('button', { name: 'Rotate' }));
      await screen.findByRole('dialog');
      const backdrop = document.querySelector('.backdrop');
      if (backdrop === null) throw new Error('a modal dialog has it');
      await user.click(backdrop);
    };
    renderSignedIn([], <Opener />);
    await clickBeside();
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
    cleanup();
    renderSignedIn(
      [],
      <Opener>
        <Form onSubmit={() => undefined}>Name</Form>
      </Opener>,
    );
    await clickBeside();
    screen.getByRole('dialog');
    await user.keyboard('{Escape}');
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  });

  it('announce toasts, and keep a failure until it is closed', async () => {
    render(<ToastRegion />);
    act(() => void toast.failed('The key was not created', 'Postgres does not respond.'));
    const titles = await screen.findAllByText('The key was not created');
    expect(titles.some((title) => title.closest('[aria-live=assertive], [role=alert]') !== null)).toBe(true);
    await userEvent.setup().click(screen.getByLabelText('Close this notification'));
    await waitFor(() => expect(screen.queryByText('The key was not created')).toBeNull());
  });

  it('have a chart that can be read as a table, hostile names included', async () => {
    const hostile = '<img src=x onerror=alert(1)>';
    render(
      <Chart
        sentence="7 requests in 2 hours"
        data={{
          labels: 'time',
          starts: [Date.UTC(2026, 0, 5, 10), Date.UTC(2026, 0, 5, 11)],
          series: [
            { name: 'Allowed', tone: 'allowed', values: [3, 4] },
            { name: hostile, tone: 'failed', values: [1, null] },
          ],
        }}
      />,
    );
    expect(screen.getByRole('figure').textContent).toContain('7 requests in 2 hours');
    expect(screen.getByRole('figure').textContent).toContain(localTimeZone());
    await userEvent.setup().click(screen.getByRole('button', { name: 'View as table' }));
    const rows = within(screen.getByRole('table')).getAllByRole('row');
    expect(rows.map((row) => row.textContent?.slice(-2))).toEqual([hostile.slice(-2), '31', '4–']);
    expect(document.querySelector('img')).toBeNull();
    expect(await axeFaults()).toEqual([]);
  });

  it('show a time relative to now, with the exact instant and the time zone on hover', () => {
    render(<RelativeTime at={new Date(Date.now() - 2 * 3_600_000 - 1000).toISOString()} />);
    expect(screen.getByText('2 hours ago').getAttribute('title')).toContain(localTimeZone());
    cleanup();
    render(<RelativeTime at={null} />);
    expect(document.body.textContent).toBe('never');
  });

  it('show of what ends the date as well, without a hover', () => {
    render(<EndTime at={Date.UTC(2099, 5, 15, 12)} />);
    expect(document.body.textContent).toMatch(/^in \d+ years \(.*\b2099, .*\)$/);
  });

  it.each([
    [47, 'in 1 day'],
    [-47, '1 day ago'],
    [-59 * 24, '1 month ago'],
    [0, 'now'],
  ])('name no day or month of the calendar, %d hours from now', (hours, words) => {
    const now = jest.spyOn(Date, 'now').mockReturnValue(Date.UTC(2026, 0, 5, 10));
    render(<RelativeTime at={Date.now() + hours * 3_600_000} />);
    now.mockRestore();
    expect(document.body.textContent).toBe(words);
  });

  it('say a state in words, not by colour alone', () => {
    render(
      <>
        <StatusBadge tone="limited">Limited 312 times today</StatusBadge>
        <WindowBar used={10} limit={10} />
        <WindowBar used={null} limit={10} />
      </>,
    );
    expect(screen.getByText('Limited 312 times today')).toBeTruthy();
    expect(screen.getByText('nothing left', { exact: false })).toBeTruthy();
    expect(screen.getByText('not known now')).toBeTruthy();
  });

  it('have a menu that can be used by the keyboard', async () => {
    const chosen: string[] = [];
    render(
      <Menu
        trigger={<Button>More</Button>}
        items={[
          { label: 'Disable', onSelect: () => chosen.push('disable') },
          { label: 'Delete', onSelect: () => chosen.push('delete'), danger: true },
        ]}
      />,
    );
    const user = userEvent.setup();
    screen.getByRole('button', { name: 'More' }).focus();
    await user.keyboard('{Enter}');
    await screen.findByRole('menuitem', { name: 'Delete' });
    expect(await axeFaults()).toEqual([]);
    await user.keyboard('{End}{Enter}');
    await waitFor(() => expect(chosen).toEqual(['delete']));
  });
});
