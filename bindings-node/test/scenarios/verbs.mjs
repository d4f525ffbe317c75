/** The control verbs as a TypeScript user calls them, each with the answer in the shape of the bridge. */
import { createRequire } from "node:module";
import { Run } from "drayhorse";

// The package's inside: for what is asked of a claim only by workers, and has no method of its own.
const { coreOf } = createRequire(import.meta.url)("../../dist/queue.js");

const byTarget = ({ id, filter, ...options }) => [id ?? filter, options];
const named = ({ name, ...rest }) => [name, rest];

const VERBS = {
  enqueue: (queue, { type, payload, options }) => queue.enqueue(type, payload, options),
  enqueueMany: (queue, { jobs }) => queue.enqueueMany(jobs),
  get: (queue, { id }) => queue.get(id),
  timeline: (queue, { id }) => queue.timeline(id),
  list: (queue, { filter, page, payload }) => queue.list(filter, { ...page, payload }),
  counts: (queue, { filter }) => queue.counts(filter),
  wait: (queue, { id, timeoutMs }) => queue.wait(id, timeoutMs),
  cancel: async (queue, { id, ...options }) => ({ result: await queue.cancel(id, options) }),
  redrive: (queue, args) => queue.redrive(...byTarget(args)),
  redrivePreview: (queue, { filter }) => queue.redrivePreview(filter),
  replay: (queue, args) => queue.replay(...byTarget(args)),
  replayPreview: (queue, { id, filter }) => queue.replayPreview(id ?? filter),
  startRun: async (queue, { name }) => ({ id: (await queue.startRun(name)).id }),
  finishRun: (queue, { id }) => new Run(queue, id).finish(),
  getRun: (queue, { id }) => new Run(queue, id).get(),
  previewPolicy: (queue, { policy, ...options }) => queue.previewPolicy(policy, options),
  claim: (queue, args) => queue.claim(args),
  complete: (queue, { claim, result }) => queue.complete(claim, result),
  fail: (queue, { claim, error, ...options }) => queue.fail(claim, thrown(error), options),
  release: (queue, { claim }) => queue.release(claim),
  heartbeat: (queue, { claims, ...options }) => queue.heartbeat(claims, options),
  checkpointGet: (queue, args) => coreOf(queue).ask("checkpointGet", args),
  checkpointPut: (queue, args) => coreOf(queue).ask("checkpointPut", args),
  prune: (queue, options) => queue.prune(options),
  "workers.list": (queue) => queue.workers.list(),
  "contracts.publish": (queue, contract) => queue.contracts.publish(contract),
  "contracts.get": (queue, { type, version }) => queue.contracts.get(type, version),
  "contracts.list": async (queue, { handlers }) => ({ contracts: await queue.contracts.list(handlers) }),
};

for (const group of ["endpoints", "queues"]) {
  VERBS[`${group}.list`] = (queue, page) => queue[group].list(page);
  VERBS[`${group}.get`] = (queue, { name }) => queue[group].get(name);
  for (const act of ["configure", "pause", "resume", "forceOpen", "forceClose", "reset"])
    VERBS[`${group}.${act}`] = (queue, args) => queue[group][act](...named(args));
}

/** Calls `verb` through the public API. */
export function call(queue, verb, args) {
  const method = VERBS[verb];
  if (!method) throw new Error(`this runner knows no verb ${verb}`);
  return method(queue, args);
}

/** The error that a handler of one's own would have caught. */
function thrown({ name, message, causes: [cause] = [], ...rest }) {
  const error = new Error(message, cause && { cause: thrown(cause) });
  return Object.assign(error, { name }, rest);
}
