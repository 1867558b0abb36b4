/** The table `events`. */
export interface EventsTable {
  readonly sequence: number;
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly at: Date;
  readonly tags: readonly string[];
  readonly data: string;
}
