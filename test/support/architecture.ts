/** Which part of `src` may import what. A pure checker, so that a test can show that it fails. */
import { posix } from "node:path";

/**
 * From low to high. A room imports from lower rows and from itself, never from another room of its own row. Names are
 * those below `src`.
 */
const LAYERS: readonly (readonly string[])[] = [
  ["base"],
  ["config"],
  ["store"],
  ["nodes"],
  ["ledger", "access", "limits", "notify"],
  ["gate"],
  ["feed"],
  ["models"],
  ["reading"],
  ["vault"],
  ["connectors"],
  ["tasks"],
  ["dialects"],
  ["http", "mcp"],
  ["doors.ts"],
  ["gateway"],
  ["gateway.ts"],
  ["cli"],
  ["main.ts"],
];

/** The framework is beside the layers: it may import only `base`, and only these may import it. */
const AGENTS_MAY_IMPORT = ["base"];
const MAY_IMPORT_AGENTS = [
  "models",
  "connectors",
  "tasks",
  "dialects",
  "http",
  "mcp",
  "doors.ts",
  "gateway.ts",
  "cli",
  "main.ts",
];
/** The console is a page for browsers that works over REST. Only these may import it, to serve it. */
const MAY_IMPORT_CONSOLE = ["http"];
/** Of `src`, the console may import REST's types and whatever also runs in browsers. */
const CONSOLE_MAY_IMPORT = ["console/**", "http/api.ts", "base/glob.ts", "vault/terms/stop-words.ts"];
const TYPES_ALONE = ["http/api.ts"];

/** Packages that may be imported only in some places. Places are globs below `src`; the first matching row counts. */
const PACKAGES: readonly { readonly packages: RegExp; readonly places: readonly string[] }[] = [
  { packages: /^(elysia|@elysiajs\/.+|@elysia\/.+)$/, places: ["http/**"] },
  { packages: /^bun:sqlite$/, places: ["store/**", "vault/index-sqlite.ts"] },
  { packages: /^@modelcontextprotocol\/.+$/, places: ["mcp/**", "connectors/mcp-upstream/**"] },
  { packages: /^@ai-sdk\/provider$/, places: ["models/**", "agents/**", "tasks/**", "dialects/**"] },
  { packages: /^@ai-sdk\/.+$/, places: ["models/providers/**"] },
  { packages: /^commander$/, places: ["cli/**"] },
  { packages: /^yaml$/, places: ["config/**", "connectors/openapi/document.ts"] },
  { packages: /^swagger-ui-dist$/, places: ["http/docs/**"] },
  { packages: /^(unpdf|csv-parse|htmlparser2)$/, places: ["vault/read/**"] },
  { packages: /^croner$/, places: ["tasks/schedules/cron.ts"] },
  { packages: /^csv-stringify$/, places: ["ledger/article14/**", "http/ledger/csv.ts"] },
  { packages: /^stemmer$/, places: ["vault/terms/**", "vault/search/**", "console/pages/vault/**"] },
  {
    packages: /^ipaddr\.js$/,
    places: ["config/address-range.ts", "connectors/outbound/**", "http/connections/**"],
  },
  { packages: /^@apidevtools\/.+$/, places: ["connectors/openapi/**"] },
  { packages: /^@zip\.js\/zip\.js$/, places: ["ledger/article14/format/zip.ts", "vault/read/docx/zip.ts"] },
  { packages: /^@noble\/hashes$/, places: ["ledger/verify/bundle/**"] },
  { packages: /^sqlite-vec(-.+)?$/, places: ["store/sqlite/**"] },
  { packages: /^pg$/, places: ["store/postgres/driver.ts"] },
  { packages: /^(preact|preact-iso|uplot|@tanstack\/virtual-core)$/, places: ["console/**"] },
];
/** The framework also runs on Node. */
const BUN_ONLY = /^bun(:.+)?$/;

/**
 * The code that runs in the vault's workers, and everything in `src` that it may import. A worker must load quickly,
 * hold no secret and write nothing.
 */
const WORKER = [
  "vault/{read,prepare,search,segments,terms}/**",
  "vault/{worker,index-store,index-sqlite,index-postgres}.ts",
];
const WORKER_MAY_IMPORT = [
  ...WORKER,
  "base/**",
  "access/memory-scope.ts",
  "vault/messages.ts",
  "reading/job-errors.ts",
  "vault/rows/{keys,pages,vector-table}.ts",
];

/** In the workers, the code of one engine. Only the worker, which opens the index, may know which engine it is. */
const ENGINE = ["vault/index-{sqlite,postgres}.ts", "vault/rows/vector-table.ts"];
/** What the index's engine needs of the store's engine. */
const READS_STORE = ["store/db.ts", "store/postgres/snapshots.ts"];
const OPENS_ENGINE = ["vault/worker.ts", ...ENGINE];

/**
 * The code that checks evidence, here and in an auditor's browser. It may use nothing of Bun or Node, and nothing
 * else of `src`.
 */
const ANYWHERE = [
  "base/json-limits.ts",
  "ledger/proof/**",
  "ledger/verify/{form,report}.ts",
  "ledger/verify/bundle/*.ts",
  "ledger/verify/bundle/archive/**",
  "ledger/verify/bundle/page/{main,dom,tools}.ts",
  "ledger/article14/format/**",
];

const MOST_LINES = 400;

export interface SourceFile {
  /** Relative to `src`, with `/` as the separator. */
  readonly path: string;
  readonly text: string;
}

/** Everything in these files that the architecture forbids, one sentence each. */
export function violations(files: readonly SourceFile[]): string[] {
  return files.flatMap((file) =>
    [
      ...importsOf(file).map((specifier) => refuseImport(file.path, specifier)),
      refuseValues(file),
      refuseGlobals(file),
      refuseLength(file),
      refuseDefault(file),
    ].flatMap((reason) => (reason === undefined ? [] : [`src/${file.path} ${reason}`])),
  );
}

/** Every imported module: values and types, static and dynamic imports, and re-exports. */
export function importsOf({ path, text }: SourceFile): string[] {
  const loader = path.endsWith("x") ? "tsx" : "ts";
  const patterns = [
    /^\s*(?:import|export)\b[^;"'`]*?\bfrom\s*["']([^"'\n]+)["']/gm,
    /^\s*import\s*["']([^"'\n]+)["']/gm,
    /\b(?:import|require)\s*\(\s*["']([^"'\n]+)["']/g,
  ];
  // The transpiler reads every syntax but drops types; the patterns also see types.
  const seen = new Set(new Bun.Transpiler({ loader }).scanImports(text).map((found) => found.path));
  for (const pattern of patterns) {
    for (const match of text.matchAll(pattern)) if (match[1] !== undefined) seen.add(match[1]);
  }
  return [...seen].sort();
}

function refuseImport(path: string, specifier: string): string | undefined {
  if (!specifier.startsWith(".")) return refusePackage(path, specifier);
  const target = posix.normalize(posix.join(posix.dirname(path), specifier));
  if (target === "../package.json" && path === "base/version.ts") return undefined;
  if (target.startsWith("..")) return `imports ${specifier}, which is outside src`;
  if (roomOf(path) === "console") return refuseInConsole(target);
  return (
    refuseRoom(roomOf(path), roomOf(target)) ?? refuseInWorker(path, target) ?? refuseAnywhere(path, target)
  );
}

function refuseInConsole(target: string): string | undefined {
  return matches(target, [...CONSOLE_MAY_IMPORT, ...ANYWHERE])
    ? undefined
    : `imports ${target}: the console may not`;
}

/** A page that imported a value from one of these would pull in half of the server. */
function refuseValues({ path, text }: SourceFile): string | undefined {
  if (roomOf(path) !== "console") return undefined;
  const loader = path.endsWith("x") ? "tsx" : "ts";
  // The transpiler drops types, so whatever it finds imports values.
  const found = new Bun.Transpiler({ loader }).scanImports(text).find(({ path: specifier }) => {
    if (!specifier.startsWith(".")) return false;
    return matches(posix.normalize(posix.join(posix.dirname(path), specifier)), TYPES_ALONE);
  });
  return found && `imports values of ${found.path}, of which it may take types alone`;
}

function refuseAnywhere(path: string, target: string): string | undefined {
  if (!matches(path, ANYWHERE) || matches(target, ANYWHERE)) return undefined;
  return `imports ${target}: what runs in browsers as well may not`;
}

function refuseGlobals({ path, text }: SourceFile): string | undefined {
  const runsInBrowsers = matches(path, ANYWHERE) || roomOf(path) === "console";
  const uses = runsInBrowsers && /\b(?:Bun|Buffer|process)\.\w/.test(text);
  return uses ? "uses what browsers do not have" : undefined;
}

function refuseInWorker(path: string, target: string): string | undefined {
  if (!matches(path, WORKER)) return undefined;
  if (matches(target, ENGINE) && !matches(path, OPENS_ENGINE)) {
    return `imports ${target}: what loads and ranks in the vault's workers may not know the engine`;
  }
  const allowed = matches(path, ENGINE) ? [...WORKER_MAY_IMPORT, ...READS_STORE] : WORKER_MAY_IMPORT;
  return matches(target, allowed) ? undefined : `imports ${target}: what runs in the vault's workers may not`;
}

function matches(path: string, places: readonly string[]): boolean {
  return places.some((place) => new Bun.Glob(place).match(path));
}

/** The first folder below `src`, or the name of a file directly in `src`. */
function roomOf(path: string): string {
  return path.split("/")[0] ?? path;
}

function refuseRoom(from: string, to: string): string | undefined {
  if (from === to) return undefined;
  const refusal = `imports from ${to}: ${from} may not`;
  if (to === "console") return MAY_IMPORT_CONSOLE.includes(from) ? undefined : refusal;
  if (from === "agents") return AGENTS_MAY_IMPORT.includes(to) ? undefined : refusal;
  if (to === "agents") return MAY_IMPORT_AGENTS.includes(from) ? undefined : refusal;
  const [fromLayer, toLayer] = [layerOf(from), layerOf(to)];
  if (fromLayer === -1) return `stands in ${from}, which has no place in the architecture test`;
  if (toLayer === -1) return `imports from ${to}, which has no place in the architecture test`;
  return toLayer < fromLayer ? undefined : refusal;
}

function layerOf(room: string): number {
  return LAYERS.findIndex((layer) => layer.includes(room));
}

function refusePackage(path: string, specifier: string): string | undefined {
  const refusal = `imports the package ${specifier}, which it may not`;
  if (roomOf(path) === "agents" && BUN_ONLY.test(specifier)) return refusal;
  if ((matches(path, ANYWHERE) || roomOf(path) === "console") && /^(?:bun|node)(?::|$)/.test(specifier))
    return refusal;
  const name = packageName(specifier);
  const rule = PACKAGES.find(({ packages }) => packages.test(name));
  if (rule === undefined) return undefined;
  return matches(path, rule.places) ? undefined : refusal;
}

/** `@scope/name/sub/path` to `@scope/name`. */
function packageName(specifier: string): string {
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

function refuseLength({ text }: SourceFile): string | undefined {
  const lines = text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
  return lines > MOST_LINES ? `has ${lines} lines, more than ${MOST_LINES}: it is two things` : undefined;
}

function refuseDefault({ text }: SourceFile): string | undefined {
  const found = /^\s*export\s+default\b|^\s*export\s*\{[^}]*\bas\s+default\b/m.test(text);
  return found ? "has a default export: exports are named" : undefined;
}
