/** `queue.contracts`: publishes and reads tool contracts. A queue makes it. */
import type { Contract, NewContract, PublishedContract } from "./contract-types.js";
import { encodeData, encodePolicy } from "./json.js";
import type { Ask } from "./rows.js";

export class Contracts {
  readonly #ask: Ask;

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /** Publishes for good; a `ContractConflictError` when this version has another content. */
  async publish(contract: NewContract): Promise<PublishedContract> {
    const { inputSchema, outputSchema, retryPolicy, ...rest } = { ...contract };
    return this.#ask("contracts.publish", {
      ...rest,
      inputSchema: encodeData(inputSchema, "inputSchema"),
      outputSchema: encodeData(outputSchema, "outputSchema"),
      retryPolicy: encodePolicy(retryPolicy),
    });
  }

  /** The contract of a type and version (default `"1"`), or `undefined`. */
  async get(type: string, version?: string): Promise<Contract | undefined> {
    return (await this.#ask<Contract | null>("contracts.get", { type, version })) ?? undefined;
  }

  /** All contracts, or those of `handlers`. */
  async list(handlers?: readonly { type: string; version?: string | undefined }[]): Promise<Contract[]> {
    return (await this.#ask<{ contracts: Contract[] }>("contracts.list", { handlers })).contracts;
  }
}
