import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** A copy of the package as npm would install it, without a native library. */
function installed(t) {
  const folder = mkdtempSync(join(tmpdir(), "drayhorse-loader-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const target = join(folder, "node_modules", "drayhorse");
  mkdirSync(target, { recursive: true });
  for (const part of ["package.json", "dist"])
    cpSync(join(root, part), join(target, part), { recursive: true });
  const parser = join(root, "node_modules", "lossless-json");
  symlinkSync(parser, join(folder, "node_modules", "lossless-json"));
  const run = () => {
    const code = 'try { require("drayhorse"); } catch (error) { console.log(error.message); }';
    return spawnSync(process.execPath, ["-e", code], { cwd: folder, encoding: "utf8" }).stdout.trim();
  };
  return { folder, run };
}

const platform = `${process.platform}-${process.arch}${process.platform === "linux" ? "-gnu" : ""}`;

test("a missing native library is named in one sentence", (t) => {
  const { run } = installed(t);
  assert.equal(
    run(),
    `drayhorse has no native library for ${platform}: install the optional package @drayhorse/${platform} ` +
      "(npm leaves it out with --omit=optional, and on platforms without one).",
  );
});

test("a native library of another version is refused", (t) => {
  const { folder, run } = installed(t);
  const other = join(folder, "node_modules", "@drayhorse", platform);
  mkdirSync(other, { recursive: true });
  writeFileSync(
    join(other, "package.json"),
    JSON.stringify({ name: `@drayhorse/${platform}`, main: "x.js" }),
  );
  writeFileSync(join(other, "x.js"), 'exports.version = () => "0.0.1";');
  assert.match(run(), /^drayhorse \d+\.\d+\.\d+ found the native library of version 0\.0\.1: install /);
});

test("the platform package is used when it is there", (t) => {
  const { folder, run } = installed(t);
  const target = join(folder, "node_modules", "@drayhorse", platform);
  cpSync(join(root, "npm", platform), target, { recursive: true });
  cpSync(join(root, "native", "drayhorse.node"), join(target, "drayhorse.node"));
  assert.equal(run(), "");
});
