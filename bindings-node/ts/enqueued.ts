/** What `enqueue` returns: the job's id, usable wherever an id is wanted. */
export class Enqueued {
  readonly id: string;
  /** Whether an earlier enqueue with the same idempotency key made this job. */
  readonly replayed: boolean;

  constructor(id: string, replayed: boolean) {
    this.id = id;
    this.replayed = replayed;
  }

  /** The id. */
  toString(): string {
    return this.id;
  }

  /** The id: in JSON a job is named by it. */
  toJSON(): string {
    return this.id;
  }
}
