import type { Generated } from 'kysely';
import type { Actor } from '../../../audit/change-context.ts';
import type { JobAction, JobState } from '../../../jobs/job.ts';

/** The table `jobs`. */
export interface JobsTable {
  readonly id: string;
  readonly created_at: Date;
  readonly action: JobAction;
  readonly changes: string | null;
  readonly state: Generated<JobState>;
  readonly ended_at: Date | null;
  readonly total: number;
  readonly position: Generated<number>;
  readonly failed: Generated<number>;
  readonly actor_type: Actor['type'];
  readonly actor_id: string | null;
  readonly actor_name: string;
  readonly actor_email: string | null;
  readonly only_tags: readonly string[];
  readonly reason: string | null;
  readonly request_id: string;
  readonly address: string;
  readonly allowed_until: Date | null;
  readonly holder: string | null;
  readonly held_until: Date | null;
}

/** The table `job_keys`. */
export interface JobKeysTable {
  readonly job_id: string;
  readonly position: number;
  readonly key_id: string;
  readonly code: string | null;
}
