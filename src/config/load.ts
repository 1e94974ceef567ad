import { join, resolve } from "node:path";
import { buildConfig } from "./build.ts";
import type { LoadedConfig, ResolvedValue } from "./config.ts";
import { vendorKeys, withDefaultModels } from "./defaults.ts";
import { lookUp, unknownVariables, type VariableLookup, type Variables } from "./environment.ts";
import { readFileSettings } from "./file-settings.ts";
import { interpretText } from "./interpret.ts";
import { listenUrl, parseListen } from "./listen.ts";
import { type ConfigProblem, configError } from "./problems.ts";
import { isMissing, type ReadFile, readFailure, readTextFile } from "./read-file.ts";
import { referenceProblems } from "./references.ts";
import { isPlaceholder, type Setting } from "./setting.ts";
import { SETTINGS, TABLE } from "./table.ts";
import { parseTree, type Tree } from "./tree.ts";

export interface ConfigSources {
  /** The command line's flags, by setting key. */
  readonly flags: { readonly [Key in "data" | "config" | "listen"]?: string | undefined };
  readonly env: Variables;
  /** The absolute directory at which relative paths in flags and variables start. */
  readonly cwd: string;
  readonly readFile?: ReadFile;
}

export type LoadResult =
  | { readonly ok: true; readonly loaded: LoadedConfig }
  | { readonly ok: false; readonly problems: readonly ConfigProblem[] };

const FILE_LIMIT = 1024 * 1024;
const FILE_NAME = "gatehouse.yaml";
const NOTHING: Tree = { form: "map", line: 1, entries: new Map() };

/**
 * Loads the configuration from flags, variables, the file and defaults, in this order of precedence.
 * @throws OperatorError with exit code 2 that lists every problem
 */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const result = tryLoadConfig(sources);
  if (!result.ok) throw configError(result.problems);
  return result.loaded;
}

/** Like `loadConfig`, but returns the problems. */
export function tryLoadConfig(sources: ConfigSources): LoadResult {
  const { env, cwd, readFile = readTextFile } = sources;
  const variable = (name: string) => lookUp(env, readFile, name);
  const outside = fromOutside(sources, variable);
  const misplaced = outside.problems.some(({ key }) => key === TABLE.data.key || key === TABLE.config.key);
  if (misplaced) return { ok: false, problems: outside.problems };
  const file = openFile(outside.values, cwd, readFile);
  if ("problems" in file) return { ok: false, problems: [...outside.problems, ...file.problems] };

  const inside = readFileSettings(file.tree, file.path ?? "", variable);
  const values = merge(outside.values, inside.values, file.path);
  const defaultTiers = inside.tiers.size === 0;
  const vendors = defaultTiers ? vendorKeys(env, readFile) : { keys: [], problems: [] };
  const single = [
    ...outside.problems,
    ...inside.problems,
    ...unknownVariables(env, inside.variables),
    ...vendors.problems,
  ];
  const providers = new Set([...inside.providers, ...vendors.keys.map(({ kind }) => kind)]);
  const refused = new Set(single.map(({ key }) => key));
  const problems = [
    ...single,
    ...referenceProblems(values, providers, refused).filter(({ key }) => !refused.has(key)),
  ];
  if (problems.length > 0) return { ok: false, problems };
  const loaded = { config: buildConfig(values, { cwd, file: file.path }), values, defaultTiers };
  return { ok: true, loaded: withDefaultModels(loaded, { env, ollamaModels: [], readFile }) };
}

/** The values set by flags and variables, by key. */
function fromOutside(sources: ConfigSources, variable: (name: string) => VariableLookup | undefined) {
  const flags = new Map(Object.entries(sources.flags));
  const values = new Map<string, ResolvedValue>();
  const problems: ConfigProblem[] = [];
  const take = (row: Setting, origin: "flag" | "environment", text: string, detail: string) => {
    const read = interpretText(row, text);
    const { key, path, secret } = row;
    if ("message" in read) problems.push({ key, where: detail, message: read.message });
    else values.set(key, { key, path, value: read.value, secret, origin, detail });
  };
  for (const row of SETTINGS) {
    const flag = row.flag === undefined ? undefined : flags.get(row.key);
    const found = row.env === undefined || flag !== undefined ? undefined : variable(row.env);
    if (flag !== undefined) take(row, "flag", flag, row.flag ?? row.key);
    else if (found === undefined) continue;
    else if ("failure" in found) problems.push({ key: row.key, where: row.env, message: found.failure });
    else if (found.value !== "") take(row, "environment", found.value, found.from);
  }
  return { values, problems };
}

type ConfigFileResult =
  | { readonly tree: Tree; readonly path: string | undefined }
  | { readonly problems: readonly ConfigProblem[] };

/** Opens the named file, which must exist, or else the optional file in the data directory. */
function openFile(
  given: ReadonlyMap<string, ResolvedValue>,
  cwd: string,
  readFile: ReadFile,
): ConfigFileResult {
  const named = given.get(TABLE.config.key);
  const data = given.get(TABLE.data.key)?.value ?? TABLE.data.default;
  const path = named ? resolve(cwd, String(named.value)) : join(resolve(cwd, String(data)), FILE_NAME);
  const problem = (where: string, message: string) => ({ problems: [{ key: "", where, message }] });
  let text: string;
  try {
    text = readFile(path, FILE_LIMIT);
  } catch (cause) {
    if (!named && isMissing(cause)) return { tree: NOTHING, path: undefined };
    return problem(named ? `${path} (${named.detail})` : path, `the file ${readFailure(cause, FILE_LIMIT)}`);
  }
  if (Buffer.byteLength(text) > FILE_LIMIT) return problem(path, "the file is larger than 1024 KiB");
  const tree = parseTree(text);
  if ("form" in tree) return { tree, path };
  return {
    problems: tree.map(({ line, column, message }) => ({
      key: "",
      where: `${path}:${line}:${column}`,
      message,
    })),
  };
}

/** Every setting's value, in table order. Named items are in file order. */
function merge(
  outside: ReadonlyMap<string, ResolvedValue>,
  inside: readonly ResolvedValue[],
  file: string | undefined,
): ResolvedValue[] {
  const groups = Map.groupBy(inside, ({ path }) => path[0] ?? "");
  const single = new Map(inside.map((value) => [value.key, value]));
  const values: ResolvedValue[] = [];
  for (const row of SETTINGS) {
    const [group = ""] = row.path;
    if (row.path.some(isPlaceholder)) {
      values.push(...(groups.get(group) ?? []));
      groups.delete(group);
    } else values.push(outside.get(row.key) ?? single.get(row.key) ?? defaultOf(row, values, file));
  }
  return values;
}

function defaultOf(row: Setting, before: readonly ResolvedValue[], file: string | undefined): ResolvedValue {
  const { key, path, secret } = row;
  const value = { key, path, secret, origin: "default" } as const;
  if (row === TABLE.config)
    return { ...value, value: file, detail: file ? "in the data directory" : "no file" };
  if (row === TABLE.publicUrl) {
    const listen = parseListen(String(before.find((each) => each.key === TABLE.listen.key)?.value));
    return { ...value, value: listen?.port ? listenUrl(listen) : undefined, detail: "from listen" };
  }
  return { ...value, value: row.default, detail: row.default === undefined ? "not set" : "built in" };
}
