// Executes the scenarios that every language shares, through the public API. The format is in tests/scenarios/README.md.
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { DrayhorseError } from "drayhorse";
import { mismatch } from "./scenarios/pattern.mjs";
import { plain, resolve, show } from "./scenarios/values.mjs";
import { call } from "./scenarios/verbs.mjs";
import { work } from "./scenarios/work.mjs";
import { openQueue, sql } from "./support.mjs";

// The package's own reader: the files hold integers beyond 2^53.
const { decode } = createRequire(import.meta.url)("../dist/json.js");

const folder = fileURLToPath(new URL("../../tests/scenarios", import.meta.url));
const results = process.env.DRAYHORSE_SCENARIO_RESULTS;

for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
  const { topic, scenarios } = decode(readFileSync(join(folder, file), "utf8"));
  describe(topic, { concurrency: 4 }, () => {
    for (const scenario of scenarios) {
      it(scenario.name, async (t) => {
        let passed = false;
        try {
          await play(t, scenario);
          passed = true;
        } finally {
          record({ file, name: scenario.name, passed });
        }
      });
    }
  });
}

function record(line) {
  if (results) appendFileSync(join(results, "node.jsonl"), `${JSON.stringify(line)}\n`);
}

async function play(t, { steps }) {
  const { queue, schema } = await openQueue(t);
  const kept = new Map();
  for (const [index, step] of steps.entries()) {
    const told = `step ${index + 1}, ${step.call ?? (step.work ? "work" : "advanceClock")}: `;
    const answer = await taken(queue, schema, step, kept).catch((error) => {
      throw new Error(`${told}${error.message}`, { cause: error });
    });
    if (step.as !== undefined) kept.set(step.as, answer);
    if (step.expect === undefined) continue;
    const fault = mismatch(resolve(step.expect, kept), answer);
    if (fault) throw new Error(`${told}${fault}`);
  }
}

/** The answer of one step. */
async function taken(queue, schema, step, kept) {
  if (step.advanceClock !== undefined) {
    await sql(`select "${schema}".advance_clock($1)`, [step.advanceClock]);
    return undefined;
  }
  if (step.work) return plain(await work(queue, resolve(step.work, kept), kept));
  const asked = call(queue, step.call, resolve(step.args ?? {}, kept));
  if (step.error === undefined) return plain(await asked);
  return refused(asked, step, kept);
}

async function refused(asked, step, kept) {
  const error = await asked.then(
    (answer) => {
      throw new Error(`should be refused with ${step.error}, answered ${show(plain(answer))}`);
    },
    (thrown) => thrown,
  );
  if (!(error instanceof DrayhorseError) || error.code !== step.error)
    throw new Error(`should be refused with ${step.error}, not with ${inspect(error)}`, { cause: error });
  const fault = step.details && mismatch(resolve(step.details, kept), error.details, "details");
  if (fault) throw new Error(`${fault} (${error.message})`);
  return undefined;
}
