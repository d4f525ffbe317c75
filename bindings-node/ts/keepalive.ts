/**
 * Keeps Node alive while there is something to wait for. The native bells are weak: alone they neither hold up
 * the end of a script nor keep a top-level `await` from ending the process with exit code 13. Whoever waits is
 * held here, which also keeps it from being collected while only a native thread knows of it.
 */
const waiting = new Set<object>();

// The longest interval there is; it only exists to be referenced.
const timer = setInterval(() => {}, 2 ** 31 - 1);
timer.unref();

/** Keeps the process and `user` alive until `release(user)`. */
export function hold(user: object): void {
  waiting.add(user);
  timer.ref();
}

/** Undoes `hold(user)`. */
export function release(user: object): void {
  waiting.delete(user);
  if (waiting.size === 0) timer.unref();
}
