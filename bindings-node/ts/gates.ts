/**
 * `queue.endpoints` and `queue.queues`: what operators set and see of destinations and whole queues. Every change
 * names its actor and is kept as an event. A queue makes both.
 */
import type {
  By,
  EndpointConfig,
  EndpointSnapshot,
  NamePage,
  QueueConfig,
  QueueSnapshot,
} from "./gate-types.js";
import { encodePolicy, RawJson } from "./json.js";
import type { Ask } from "./rows.js";

/** What endpoints and queues have in common. */
abstract class Gates<S extends QueueSnapshot, C extends QueueConfig> {
  readonly #group: string;
  readonly #ask: Ask;

  protected constructor(group: string, ask: Ask) {
    this.#group = group;
    this.#ask = ask;
  }

  /** In the order of their names. */
  async list(page: NamePage = {}): Promise<S[]> {
    return this.#ask(`${this.#group}.list`, page);
  }

  /** One with its last events; `undefined` when the name was never used. */
  async get(name: string): Promise<S | undefined> {
    return (await this.#ask<S | null>(`${this.#group}.get`, { name })) ?? undefined;
  }

  /** Changes what is given; `null` removes a limit or a policy. */
  async configure(name: string, config: C): Promise<S> {
    const { rateLimit, maxConcurrency, retryPolicy, ...rest }: C & Pick<EndpointConfig, "retryPolicy"> = {
      ...config,
    };
    return this.#ask(`${this.#group}.configure`, {
      ...rest,
      rateLimit: removable(rateLimit),
      maxConcurrency: removable(maxConcurrency),
      retryPolicy: encodePolicy(retryPolicy),
      name,
    });
  }

  /** Lets no further job start; running ones end. */
  async pause(name: string, by: By): Promise<S> {
    return this.act("pause", name, by);
  }

  /** Ends a pause. */
  async resume(name: string, by: By): Promise<S> {
    return this.act("resume", name, by);
  }

  protected async act(verb: string, name: string, by: By): Promise<S> {
    return this.#ask(`${this.#group}.${verb}`, { ...by, name });
  }
}

/** The queues of a queue database, with the gates that hold for a whole one. */
export class Queues extends Gates<QueueSnapshot, QueueConfig> {
  constructor(ask: Ask) {
    super("queues", ask);
  }
}

/** The destinations that jobs talk to. */
export class Endpoints extends Gates<EndpointSnapshot, EndpointConfig> {
  constructor(ask: Ask) {
    super("endpoints", ask);
  }

  /** Holds the circuit open until `reset`: only synthetic tests start. */
  async forceOpen(name: string, by: By): Promise<EndpointSnapshot> {
    return this.act("forceOpen", name, by);
  }

  /** Holds the circuit closed until `reset`, whatever fails. */
  async forceClose(name: string, by: By): Promise<EndpointSnapshot> {
    return this.act("forceClose", name, by);
  }

  /** Ends a force: the circuit is closed and counts anew. */
  async reset(name: string, by: By): Promise<EndpointSnapshot> {
    return this.act("reset", name, by);
  }
}

const REMOVED = new RawJson("null");

/** A setting as it is sent: `null`, refused elsewhere, takes it away. */
function removable<T>(setting: T): T | RawJson {
  return setting === null ? REMOVED : setting;
}
