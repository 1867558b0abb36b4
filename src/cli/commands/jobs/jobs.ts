import { bodyOf } from '../../../client/management-client.ts';
import { type PageOptions, paged, pagesOf } from '../../api/pages.ts';
import { audited, managed } from '../../api/session.ts';
import { CommandFault } from '../../command-fault.ts';
import type { Declare } from '../../declare.ts';
import { JOB, JOBS } from './job-listing.ts';

export const declareJobs: Declare = (jobs, terminal) => {
  jobs.description(
    'Changes of many keys in the background, which "keys bulk" begins. A job is removed seven days after its end; the audit log keeps what it changed.',
  );

  const list = jobs
    .command('list')
    .summary('List jobs')
    .description('Lists the jobs of the last days, newest first.')
    .addHelpText('after', '\nExample:\n  tollgate jobs list --all -o csv');
  managed<PageOptions>(paged(list), terminal, async ({ client, output }, _words, options) => {
    const pages = pagesOf(options, output, async (query) => {
      const page = await bodyOf(client.GET('/tollgate/job', { params: { query } }));
      return { items: page.jobs, nextCursor: page.nextCursor };
    });
    await output.list(JOBS, pages);
  });

  const show = jobs
    .command('show')
    .summary('Show how far a job is')
    .description('Shows how far a job is. JSON has the keys that it could not change, at most 1000 of them.')
    .argument('<job>', 'id')
    .addHelpText(
      'after',
      `
Examples:
  tollgate jobs show job_01KGH3V6ZQ5T8M2N4P6R8S0T2V
  tollgate jobs show job_01KGH3V6ZQ5T8M2N4P6R8S0T2V -o json | jq -r '.failed[].consumerApiKeyId'`,
    );
  managed(show, terminal, async ({ client, output }, [jobId = '']) => {
    const path = { jobId };
    await output.item(JOB, await bodyOf(client.GET('/tollgate/job/{jobId}', { params: { path } })));
  });

  const cancel = jobs
    .command('cancel')
    .summary('End a job before its last key')
    .description(
      'Ends a job. No further key is changed; those that were changed stay so. The exit code is 5 where the job had ended already.',
    )
    .argument('<job>', 'id')
    .addHelpText(
      'after',
      '\nExample:\n  tollgate jobs cancel job_01KGH3V6ZQ5T8M2N4P6R8S0T2V --reason "wrong tag"',
    );
  managed(audited(cancel), terminal, async ({ client, output }, [jobId = '']) => {
    const path = { jobId };
    const job = await bodyOf(client.POST('/tollgate/job/{jobId}/cancel', { params: { path } }));
    await output.item(JOB, job);
    if (job.state !== 'cancelled')
      throw new CommandFault('conflict', `The job had ended already: it is ${job.state}.`);
  });
};
