/**
 * From an HTTP response to a retry decision, by the table every language shares; the core decides. Handlers and
 * classifiers call it when they talk to a service.
 */
import { guarded } from "./errors.js";
import { encodeArguments } from "./json.js";
import { native } from "./native.js";
import type { HttpDecision, HttpDecisionOptions, HttpOutcome } from "./types.js";

/** What a response, or the lack of one, means for the next attempt. */
export function httpDecision(response: HttpOutcome, options: HttpDecisionOptions = {}): HttpDecision {
  const args = encodeArguments({ response, options: { ...options, headers: linesOf(options.headers) } });
  return JSON.parse(guarded(() => native.httpDecision(args)));
}

/** The same for a `Response` of `fetch`; its headers are read, its body is left alone. */
export function decisionFromResponse(
  response: { readonly status: number; readonly headers: Iterable<[string, string]> },
  options: Omit<HttpDecisionOptions, "headers"> = {},
): HttpDecision {
  return httpDecision({ status: response.status }, { ...options, headers: response.headers });
}

/** Headers in any of their usual forms as `{name: [values]}`. */
function linesOf(headers: HttpDecisionOptions["headers"]): Record<string, string[]> | undefined {
  if (headers === undefined) return undefined;
  const entries =
    Symbol.iterator in headers ? [...(headers as Iterable<[string, string]>)] : Object.entries(headers);
  const lines: Record<string, string[]> = {};
  for (const [name, value] of entries) {
    if (value === undefined) continue;
    // A header that makes no sense is ignored there: this runs in somebody's error path.
    const texts = [value].flat().map((line) => String(line).toWellFormed());
    lines[name] = [...(lines[name] ?? []), ...texts];
  }
  return lines;
}
