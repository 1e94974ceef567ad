import type { LoadedConfig } from "../../src/config/config.ts";
import { type ConfigSources, loadConfig, tryLoadConfig } from "../../src/config/load.ts";
import { problemLine } from "../../src/config/problems.ts";

export interface Given {
  /** The content of /srv/gatehouse-data/gatehouse.yaml. */
  readonly yaml?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly flags?: ConfigSources["flags"];
  /** Other files by absolute path. */
  readonly files?: Readonly<Record<string, string>>;
}

export const DEFAULT_FILE = "/srv/gatehouse-data/gatehouse.yaml";

/** The sources of a program started in /srv, with files only in memory. */
export function sources({ yaml, env = {}, flags = {}, files = {} }: Given): ConfigSources {
  const all = new Map(Object.entries(files));
  if (yaml !== undefined) all.set(DEFAULT_FILE, yaml);
  const readFile = (path: string): string => {
    const content = all.get(path);
    if (content !== undefined) return content;
    throw Object.assign(new Error(`ENOENT: no such file, open '${path}'`), { code: "ENOENT" });
  };
  return { flags, env, cwd: "/srv", readFile };
}

export function load(given: Given): LoadedConfig {
  return loadConfig(sources(given));
}

/** Where a setting came from: `origin (detail)`. */
export function originOf(loaded: LoadedConfig, key: string): string | undefined {
  const found = loaded.values.find((value) => value.key === key);
  return found && `${found.origin} (${found.detail})`;
}

/** The problems as users read them, with the default file's path as F. */
export function problems(given: Given): string[] {
  const result = tryLoadConfig(sources(given));
  return result.ok
    ? []
    : result.problems.map((problem) => problemLine(problem).replaceAll(DEFAULT_FILE, "F"));
}
