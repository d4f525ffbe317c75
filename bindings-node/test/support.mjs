/**
 * The tests' small language: a queue in a schema of its own, a running worker, SQL on the side, waiting for a
 * condition, and scripts in a process of their own.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Queue, Worker } from "drayhorse";
import pg from "pg";

const here = dirname(fileURLToPath(import.meta.url));

/** The database the tests may use; without it they fail rather than pretend. */
export function testUrl() {
  const url = process.env.DRAYHORSE_TEST_URL;
  if (!url)
    throw new Error("DRAYHORSE_TEST_URL is not set: it names a PostgreSQL database the tests may use");
  return url;
}

const cleanups = new WeakMap();

/** Runs `step` after the test, the last one given first. */
export function defer(t, step) {
  let steps = cleanups.get(t);
  if (!steps) {
    steps = [];
    cleanups.set(t, steps);
    t.after(async () => {
      for (const each of steps.reverse()) await each();
    });
  }
  steps.push(step);
}

let lastSchema = 0;

/** The name of a schema that is dropped after the test. */
export function freshSchema(t) {
  lastSchema += 1;
  const schema = `node_${process.pid}_${Date.now().toString(36)}_${lastSchema}`;
  defer(t, () => sql(`drop schema if exists "${schema}" cascade`));
  return schema;
}

/** One statement, on a connection of its own. */
export async function sql(text, params = [], url = testUrl()) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text, params)).rows;
  } finally {
    await client.end();
  }
}

/** A migrated queue in a fresh schema, closed and dropped after the test. */
export async function openQueue(t, options = {}, url = testUrl()) {
  const schema = options.schema ?? freshSchema(t);
  const queue = await Queue.connect(url, { ...options, schema });
  defer(t, () => queue.close());
  await queue.migrate();
  return { queue, schema };
}

/** Runs a worker for the length of the test. `failures` collects what `onError` is told. */
export function runWorker(t, queue, handlers, options = {}) {
  const failures = [];
  const worker = new Worker(queue, {
    pollMs: 50,
    handleSignals: false,
    onError: (error, context) => failures.push({ error, ...context }),
    ...options,
  });
  for (const [type, handler] of Object.entries(handlers)) {
    if (typeof handler === "function") worker.handle(type, handler);
    else worker.handle(type, handler.fn, handler);
  }
  const ended = worker.run();
  ended.catch(() => {});
  const stop = async () => {
    worker.stop();
    await ended;
  };
  defer(t, () => stop().catch(() => {}));
  return { worker, ended, stop, failures };
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits until `condition` gives something truthy, and gives it back. */
export async function eventually(condition, { timeoutMs = 20_000, what = String(condition) } = {}) {
  const giveUp = Date.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > giveUp) throw new Error(`still not true after ${timeoutMs} ms: ${what}`);
    await sleep(25);
  }
}

/**
 * Starts `source`, a module that may import drayhorse, in a Node of its own. `ended` gives its exit code, signal,
 * output and duration.
 */
export function startScript(t, source, env = {}) {
  // Beside the tests, so that the package's own name resolves.
  const folder = mkdtempSync(join(here, ".script-"));
  defer(t, () => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "script.mjs");
  writeFileSync(file, source);
  const started = Date.now();
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  defer(t, () => child.kill("SIGKILL"));
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => {
    output.stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output.stderr += chunk;
  });
  const ended = once(child, "close").then(([code, signal]) => ({
    code,
    signal,
    ms: Date.now() - started,
    ...output,
  }));
  const says = (text) => eventually(() => output.stdout.includes(text), { what: `the script says ${text}` });
  return { child, output, ended, says };
}

/** A TCP proxy before the database whose connections can be cut and refused, as by a restart. */
export async function openProxy(t) {
  const target = new URL(testUrl());
  const sockets = new Set();
  let open = true;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    if (!open) {
      socket.resetAndDestroy();
      return;
    }
    const upstream = connect(Number(target.port || 5432), target.hostname);
    for (const [from, to] of [
      [socket, upstream],
      [upstream, socket],
    ]) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy());
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  defer(t, () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const url = new URL(target);
  url.hostname = "127.0.0.1";
  url.port = String(server.address().port);
  return {
    url: url.href,
    /** Cuts every connection and refuses new ones. */
    down() {
      open = false;
      for (const socket of sockets) socket.destroy();
    },
    up() {
      open = true;
    },
  };
}
