/**
 * JSON as Drayhorse needs it: nothing is silently changed on the way out, and integers keep all their digits on
 * the way in. Queue, worker and job encode and decode every value here.
 */
import { parse } from "lossless-json";
import {
  type DrayhorseError,
  InvalidArgumentError,
  PayloadInvalidError,
  PolicyInvalidError,
} from "./errors.js";

/** JSON that is ready to be embedded in a larger text. */
export class RawJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Encodes a payload, a result, a checkpoint or a progress value; `undefined` (missing) stays `undefined`. */
export function encodeValue(value: unknown, root: string): string | undefined {
  return new Encoder(root, refuseValue, false).top(value);
}

/** Encodes a retry policy, which SQL judges. */
export function encodePolicy(policy: unknown): RawJson | undefined {
  const text = new Encoder("retryPolicy", refusePolicy, false).top(policy);
  return text === undefined ? undefined : new RawJson(text);
}

/** Encodes an argument that is data of its own, where `null` has a meaning: a JSON Schema. */
export function encodeData(value: unknown, root: string): RawJson | undefined {
  const text = new Encoder(root, refuseArgument, false).top(value);
  return text === undefined ? undefined : new RawJson(text);
}

/**
 * Encodes the arguments of a call: `Date` becomes its time, members that are `undefined` are absent, `null` is
 * refused. `root` is what a refusal puts before the name of the field.
 */
export function encodeArguments(args: object, root = ""): string {
  return new Encoder(root, refuseArgument, true).top(args) ?? "{}";
}

/** Decodes JSON; an integer beyond 2^53-1 becomes a `bigint`. */
export function decode(text: string): unknown {
  // The native parser is several times faster, and right whenever no number is that long.
  if (!/\d{16}/.test(text)) return JSON.parse(text);
  return parse(text, undefined, { parseNumber, onDuplicateKey: ({ newValue }) => newValue });
}

function parseNumber(text: string): number | bigint {
  const number = Number(text);
  return Number.isSafeInteger(number) || !/^-?\d+$/.test(text) ? number : BigInt(text);
}

type Refuse = (path: string, problem: string) => DrayhorseError;

const refuseValue: Refuse = (path, problem) =>
  new PayloadInvalidError(`${path}: ${problem}`, { details: { path } });

const refusePolicy: Refuse = (path, problem) =>
  new PolicyInvalidError(`${path}: ${problem}`, { details: { field: "retryPolicy", path } });

const refuseArgument: Refuse = (path, problem) =>
  new InvalidArgumentError(`${path}: ${problem}`, { details: { field: path } });

/** The contract's bound; it also ends a value that contains itself. */
const MAX_DEPTH = 100;

class Encoder {
  readonly #root: string;
  readonly #refuse: Refuse;
  readonly #isArguments: boolean;
  /** Keys and indexes from the root to where the encoder is, for the path of a refusal. */
  readonly #path: (string | number)[] = [];

  constructor(root: string, refuse: Refuse, isArguments: boolean) {
    this.#root = root;
    this.#refuse = refuse;
    this.#isArguments = isArguments;
  }

  top(value: unknown): string | undefined {
    return this.#encode(value, "");
  }

  #encode(value: unknown, key: string): string | undefined {
    switch (typeof value) {
      case "string":
        return this.#string(value);
      case "number":
        if (!Number.isFinite(value)) throw this.#refusal(`${value} is not a JSON number`);
        return JSON.stringify(value);
      case "boolean":
        return value ? "true" : "false";
      case "bigint":
        return value.toString();
      case "undefined":
        return undefined;
      case "object":
        return value === null ? this.#null() : this.#object(value, key);
      default:
        throw this.#refusal(`a ${typeof value} has no JSON form`);
    }
  }

  #null(): string {
    if (this.#isArguments) throw this.#refusal("null is refused; what is absent is undefined");
    return "null";
  }

  #string(value: string): string {
    if (!value.isWellFormed()) {
      throw this.#refusal("a lone surrogate cannot be stored; use toWellFormed() or encode the text");
    }
    return JSON.stringify(value);
  }

  #object(value: object, key: string): string | undefined {
    if (this.#path.length >= MAX_DEPTH) throw this.#refusal(`nesting over ${MAX_DEPTH} is refused`);
    if (Array.isArray(value)) return this.#array(value);
    if (value instanceof RawJson) return value.text;
    if (value instanceof Date) return this.#date(value);
    const { toJSON } = value as { toJSON?: unknown };
    if (typeof toJSON === "function") return this.#converted(Reflect.apply(toJSON, value, [key]), key);
    const prototype = Object.getPrototypeOf(value);
    // The second test lets plain objects of other realms pass: their Object.prototype is another one.
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
      const name = value.constructor?.name || "an object of a class";
      throw this.#refusal(`${name} has no JSON form; pass plain data or give it a toJSON()`);
    }
    return this.#members(value as Record<string, unknown>);
  }

  /** What a `toJSON()` answered; as in JSON.stringify it is not asked again, so that `this` is a fair answer. */
  #converted(value: unknown, key: string): string | undefined {
    const isOpaque =
      typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Date;
    return isOpaque ? this.#encode(value, key) : this.#members(value as Record<string, unknown>);
  }

  #date(value: Date): string {
    if (Number.isNaN(value.getTime())) throw this.#refusal("this Date is invalid");
    if (this.#isArguments) return JSON.stringify(value);
    throw this.#refusal("a Date would not come back as one; pass its toISOString() or getTime()");
  }

  #array(values: readonly unknown[]): string {
    let text = "[";
    for (let index = 0; index < values.length; index++) {
      this.#path.push(index);
      // As JSON.stringify does: an element cannot be left out.
      text += `${index === 0 ? "" : ","}${this.#encode(values[index], String(index)) ?? "null"}`;
      this.#path.pop();
    }
    return `${text}]`;
  }

  #members(object: Record<string, unknown>): string {
    let text = "{";
    for (const key of Object.keys(object)) {
      this.#path.push(key);
      const member = this.#encode(object[key], key);
      if (member !== undefined) text += `${text.length === 1 ? "" : ","}${this.#string(key)}:${member}`;
      this.#path.pop();
    }
    return `${text}}`;
  }

  #refusal(problem: string): DrayhorseError {
    let path = this.#root;
    for (const step of this.#path) {
      if (typeof step === "number") path += `[${step}]`;
      else if (!/^[\p{ID_Start}_$][\p{ID_Continue}$]*$/u.test(step)) path += `[${JSON.stringify(step)}]`;
      else path += path === "" ? step : `.${step}`;
    }
    const refusal = this.#refuse(path, problem);
    // The stack starts at the caller: how deep the encoder was is said by the path.
    Error.captureStackTrace(refusal, this.top);
    return refusal;
  }
}
