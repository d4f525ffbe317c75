import assert from "node:assert/strict";
import test from "node:test";
import { openQueue, startScript, testUrl } from "./support.mjs";

test("a forgotten queue is collected, one with a call under way is not", async (t) => {
  const { queue, schema } = await openQueue(t);
  const job = await queue.enqueue("job");
  const script = startScript(
    t,
    `
    import { setFlagsFromString } from "node:v8";
    import { runInNewContext } from "node:vm";
    import { Queue } from "drayhorse";
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc");
    const connect = () => Queue.connect(process.env.DRAYHORSE_TEST_URL, { schema: process.env.SCHEMA });
    let collected = 0;
    const registry = new FinalizationRegistry(() => { collected += 1; });
    const waiting = (await connect()).wait(process.env.JOB, 1_500).catch((error) => error.code);
    for (let n = 0; n < 5; n++) {
      const queue = await connect();
      await queue.counts();
      registry.register(queue);
    }
    for (let n = 0; n < 50 && collected < 4; n++) {
      gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    console.log(collected >= 4, await waiting);
    `,
    { DRAYHORSE_TEST_URL: testUrl(), SCHEMA: schema, JOB: job.id },
  );
  const { code, stdout, stderr } = await script.ended;
  assert.deepEqual([code, stderr, stdout.trim()], [0, "", "true wait_timeout"]);
});
