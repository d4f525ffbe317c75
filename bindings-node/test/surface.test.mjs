// The public surface against the copy that every language is compared with, tests/surface.json.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import test from "node:test";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { openQueue, runWorker } from "./support.mjs";

const drayhorse = createRequire(import.meta.url)("drayhorse");
const { Queue, Run, Worker } = drayhorse;
const rows = JSON.parse(readFileSync(new URL("../../tests/surface.json", import.meta.url), "utf8"));
const spelled = new Set(rows.flatMap(({ typescript = [] }) => typescript));

/** The members that the table lists for these types, their parameters and inner members left out. */
const of = (...owners) =>
  owners.flatMap((owner) =>
    [...spelled]
      .filter((name) => name.startsWith(`${owner}.`))
      .map((name) => name.slice(owner.length + 1))
      .filter((name) => /^\w+$/.test(name)),
  );
const GROUPS = { endpoints: "Endpoints", queues: "Queues", contracts: "Contracts", workers: "Queue.workers" };

const surface = {
  queue: of("Queue").filter((name) => !(name in GROUPS)),
  groups: Object.fromEntries(Object.entries(GROUPS).map(([name, owner]) => [name, of(owner)])),
  run: of("Run").filter((name) => name !== "id"),
  worker: of("Worker"),
  job: of("Job"),
  options: {
    connect: of("ConnectOptions"),
    enqueue: of("EnqueueOptions"),
    fail: of("FailOptions"),
    redrive: of("RedriveOptions"),
    replay: of("RedriveOptions", "ReplayOptions"),
    claim: of("ClaimOptions"),
    worker: of("WorkerOptions"),
    endpoint: of("EndpointConfig", "QueueConfig", "By"),
    queue: of("QueueConfig", "By"),
    contract: of("NewContract"),
  },
  decisions: ["NonRetryableError", "RetryableError", "httpDecision"].filter((name) => spelled.has(name)),
};

/** The methods of a class, its parents' too; what a language only needs for itself is left out. */
function methods(Class) {
  const found = new Set();
  for (let at = Class.prototype; at !== Object.prototype; at = Object.getPrototypeOf(at))
    for (const name of Object.getOwnPropertyNames(at)) found.add(name);
  found.delete("constructor");
  return found;
}

const same = (found, wanted) => assert.deepEqual([...found].sort(), [...wanted].sort());

test("queue, its groups, runs and workers have the methods of the table and no others", async (t) => {
  same([...methods(Queue), "connect"], surface.queue);
  assert.equal(typeof Queue.connect, "function");
  same(methods(Run), surface.run);
  same(methods(Worker), surface.worker);
  const { queue } = await openQueue(t);
  same(Object.keys(queue), Object.keys(surface.groups));
  for (const [name, verbs] of Object.entries(surface.groups)) {
    const group = queue[name];
    const own = group.constructor === Object ? Object.keys(group) : methods(group.constructor);
    own.delete?.("act");
    same(own, verbs);
  }
  for (const name of surface.decisions) assert.equal(typeof drayhorse[name], "function", name);
});

test("a job has the members of the table", async (t) => {
  const { queue } = await openQueue(t);
  const job = await queue.enqueue("look");
  runWorker(t, queue, {
    look: (_, running) => surface.job.filter((name) => !(name in running)),
  });
  const { result } = await queue.wait(job, 20_000);
  assert.deepEqual(result, []);
});

test("the option types have the keys of the table and no others", () => {
  const folder = fileURLToPath(new URL("../dist", import.meta.url));
  const files = readdirSync(folder)
    .filter((name) => name.endsWith(".d.ts"))
    .map((name) => `${folder}/${name}`);
  const program = ts.createProgram(files, { strict: true, types: ["node"] });
  const checker = program.getTypeChecker();
  const keys = new Map();
  for (const source of program.getSourceFiles()) {
    ts.forEachChild(source, (node) => {
      if (!ts.isInterfaceDeclaration(node) || !source.fileName.startsWith(folder)) return;
      const type = checker.getTypeAtLocation(node);
      keys.set(
        node.name.text,
        type.getProperties().map((property) => property.name),
      );
    });
  }
  same(keys.get("ConnectOptions"), surface.options.connect);
  same(keys.get("EnqueueOptions"), surface.options.enqueue);
  same(keys.get("FailOptions"), surface.options.fail);
  same(keys.get("RedriveOptions"), surface.options.redrive);
  same(keys.get("ReplayOptions"), surface.options.replay);
  same(keys.get("ClaimOptions"), surface.options.claim);
  same(keys.get("WorkerOptions"), surface.options.worker);
  same(keys.get("EndpointConfig"), surface.options.endpoint);
  same(keys.get("QueueConfig"), surface.options.queue);
  same(keys.get("NewContract"), surface.options.contract);
});
