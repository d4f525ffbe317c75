/** The public types of tool contracts; `types.ts` hands them on. */
import type { RetryPolicy } from "./types.js";

/** JSON Schema 2020-12 as plain data. */
export type JsonSchema = boolean | object;

/** What a type in one version promises; published once, then unchangeable. */
export interface NewContract {
  type: string;
  /** Default `"1"`. */
  version?: string | undefined;
  /** Of jobs that name none. */
  endpoint?: string | undefined;
  /** Of payloads, checked at the enqueue and before the handler. */
  inputSchema?: JsonSchema | undefined;
  /** Of results. */
  outputSchema?: JsonSchema | undefined;
  /** Of jobs that bring none: a policy of a job, or a preset such as `{ type: "standard" }`. */
  retryPolicy?: RetryPolicy | undefined;
  /** Of jobs that bring none. */
  maxAttempts?: number | undefined;
  timeoutMs?: number | undefined;
  /** Who publishes it. */
  actor?: string | undefined;
}

/** A published contract. */
export interface Contract {
  type: string;
  version: string;
  /** Names its content. */
  digest: string;
  publishedAt: Date;
  actor?: string;
  endpoint?: string;
  inputSchema?: JsonSchema;
  outputSchema?: JsonSchema;
  /** Normalized. */
  retryPolicy?: RetryPolicy;
  maxAttempts?: number;
  timeoutMs?: number;
}

/** What `publish` answers. */
export interface PublishedContract extends Contract {
  /** Whether the same contract had been published before. */
  replayed: boolean;
}
