/** What a scenario writes instead of a value: references to kept answers, long strings, deep arrays. */

/** `value` with every reference and abbreviation replaced; `kept` holds the answers so far. */
export function resolve(value, kept) {
  if (typeof value === "string") return value.startsWith("$") ? reference(value, kept) : value;
  if (Array.isArray(value)) return value.map((item) => resolve(item, kept));
  if (typeof value !== "object" || value === null) return value;
  if ("$repeat" in value) return value.$repeat[0].repeat(Number(value.$repeat[1]));
  if ("$nest" in value) return nested(Number(value.$nest));
  const resolved = {};
  for (const [key, item] of Object.entries(value)) {
    // The text of an expression may begin with a dollar.
    resolved[key] = key === "$match" ? item : resolve(item, kept);
  }
  return resolved;
}

/** The id of the job that `name` stands for in `until`. */
export function jobId(name, kept) {
  const answer = reference(`$${name}`, kept);
  return typeof answer === "string" ? answer : answer.id;
}

function reference(text, kept) {
  if (text.startsWith("$$")) return text.slice(1);
  const [name, ...path] = text.slice(1).split(".");
  if (!kept.has(name)) throw new Error(`${text} names no answer that was kept`);
  let value = kept.get(name);
  for (const step of path) value = value?.[step];
  if (value === undefined) throw new Error(`${text} is not in ${show(kept.get(name))}`);
  return value;
}

function nested(depth) {
  let value = [];
  for (let n = 1; n < depth; n++) value = [value];
  return value;
}

/** An answer in the JSON of the bridge: times as text, nothing as null. */
export function plain(answer) {
  if (answer === undefined) return null;
  if (typeof answer !== "object" || answer === null) return answer;
  if (answer instanceof Date) return answer.toISOString();
  if (Array.isArray(answer)) return answer.map(plain);
  return Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, plain(value)]));
}

/** A value as a failure shows it. */
export function show(value) {
  const text =
    JSON.stringify(value, (_, item) => (typeof item === "bigint" ? `${item}n` : item)) ?? "nothing";
  return text.length > 600 ? `${text.slice(0, 600)}…` : text;
}
