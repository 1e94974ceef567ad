import { join } from "node:path";
import { AREAS } from "./areas.ts";
import { collectionsIn } from "./vault/collections.ts";

const DEFAULT_COLLECTIONS = join(import.meta.dir, "..", "..", "..", "shared", "data");

export interface Options {
  /** Names of areas, in order. */
  readonly areas: readonly string[];
  /** Parts of the names of the scenarios to measure, in lower case. If empty, all of them. */
  readonly only: readonly string[];
  readonly json: boolean;
  readonly binary: boolean;
  readonly seconds: number;
  readonly rounds: number;
  /** A folder with at least one collection, or null. */
  readonly collections: string | null;
  readonly passages: number;
  readonly peers: boolean;
  readonly entries: number;
}

const names = Object.keys(AREAS);

export const USAGE = `Usage: scripts/bench [area] [--json] [--binary] [--seconds N] [--rounds N]
                     [--only NAMES] [--peers] [--entries N] [--collections DIR] [--passages N]

Areas: ${names.join(", ")}. Without one, all of them.

  --json             one JSON document on standard output instead of the table (scripts/benchmarks/README.md)
  --binary           measure dist/gatehouse, as scripts/build makes it, instead of the sources; area start always does
  --seconds N        length of each round, 0.2 to 60 (default 2)
  --rounds N         rounds of each contender, 1 to 50 (default 5); a warm-up round comes before
  --only NAMES       only scenarios whose name contains one of these, such as voltagent,mastra
  --peers            install other products next to the benchmarks, and measure them too; area peers does so without
                     being asked (2 GB). Area vault: LanceDB and hnswlib (550 MB at most). Areas run and models:
                     Portkey's gateway (24 MB)

Of areas ledger and growth:

  --entries N        entries of the large ledger and of the longest history, 10000 to 10000000 (default 1000000, which
                     the ledger's aims are for)

Of area vault:

  --collections DIR  folders of corpus.jsonl, queries.jsonl and qrels.tsv (default GATEHOUSE_COLLECTIONS, else
                     ../shared/data if it is there)
  --passages N       passages of the large collection, 1000 to 1000000 (default 100000, which the aims are for)`;

/** Whether the scenario with this name is to be measured. */
export function isChosen(scenario: string, { only }: Options): boolean {
  return only.length === 0 || only.some((part) => scenario.toLowerCase().includes(part));
}

function scenariosOf(area: string): string[] {
  return Object.keys(AREAS[area] ?? {});
}

/** The options in the arguments, or what is wrong with them. */
export function parseOptions(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Options | string {
  let options: Options = {
    areas: names,
    only: [],
    json: false,
    binary: false,
    seconds: 2,
    rounds: 5,
    collections: environment.GATEHOUSE_COLLECTIONS || null,
    passages: 100_000,
    peers: false,
    entries: 1_000_000,
  };
  const rest = [...args];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === "--json") options = { ...options, json: true };
    else if (arg === "--binary") options = { ...options, binary: true };
    else if (arg === "--peers") options = { ...options, peers: true };
    else if (arg === "--seconds") {
      const seconds = Number(rest.shift());
      if (!(seconds >= 0.2 && seconds <= 60)) return "--seconds takes a number from 0.2 to 60";
      options = { ...options, seconds };
    } else if (arg === "--rounds") {
      const rounds = Number(rest.shift());
      if (!(Number.isInteger(rounds) && rounds >= 1 && rounds <= 50)) return "--rounds takes 1 to 50";
      options = { ...options, rounds };
    } else if (arg === "--passages") {
      const passages = Number(rest.shift());
      if (!(Number.isInteger(passages) && passages >= 1_000 && passages <= 1_000_000)) {
        return "--passages takes 1000 to 1000000";
      }
      options = { ...options, passages };
    } else if (arg === "--entries") {
      const entries = Number(rest.shift());
      if (!(Number.isInteger(entries) && entries >= 10_000 && entries <= 10_000_000)) {
        return "--entries takes 10000 to 10000000";
      }
      options = { ...options, entries };
    } else if (arg === "--only") {
      const only = (rest.shift() ?? "").toLowerCase().split(",");
      if (only.includes("")) return "--only takes parts of scenarios' names, separated by commas";
      options = { ...options, only };
    } else if (arg === "--collections") {
      const collections = rest.shift() ?? "";
      if (collections === "") return "--collections takes a folder";
      options = { ...options, collections };
    } else if (arg.startsWith("-")) return `there is no option ${arg}`;
    else if (options.areas !== names) return "one area at a time, or none for all";
    else if (!names.includes(arg)) return `there is no area ${arg}; there are: ${names.join(", ")}`;
    else options = { ...options, areas: [arg] };
  }
  const [area, ...others] = options.areas;
  if (others.length === 0 && area === "peers") options = { ...options, peers: true };
  if (others.length === 0 && area === "start") options = { ...options, binary: true };
  if (!options.areas.some((area) => scenariosOf(area).some((scenario) => isChosen(scenario, options)))) {
    return `no scenario is called that; there are: ${options.areas.flatMap(scenariosOf).join(", ")}`;
  }
  if (options.collections === null) {
    const isThere = collectionsIn(DEFAULT_COLLECTIONS).length > 0;
    return isThere ? { ...options, collections: DEFAULT_COLLECTIONS } : options;
  }
  if (collectionsIn(options.collections).length > 0) return options;
  return `there is no collection in ${options.collections}: no folder of corpus.jsonl, queries.jsonl and qrels.tsv`;
}
