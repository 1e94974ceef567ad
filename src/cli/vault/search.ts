import { OperatorError } from "../../base/errors.ts";
import type { SEARCH_MODES } from "../../vault/fields.ts";
import { withGateway } from "../operator.ts";
import { type ConfigOptions, resolveConfig } from "../options.ts";
import { print, printJson } from "../output.ts";
import { checkScope, readPairs } from "./arguments.ts";
import { lineOf, linesOf } from "./text.ts";

const COLUMNS = 100;
const LINES = 6;

export interface SearchVerbOptions extends ConfigOptions {
  readonly scope?: readonly string[];
  readonly agent?: string;
  readonly topK?: string;
  readonly mode?: (typeof SEARCH_MODES)[number];
  readonly filter?: readonly string[];
  readonly explain?: boolean;
  readonly workspace: string;
  readonly json?: boolean;
}

interface ScorePart {
  readonly rank: number | null;
  readonly score: number;
}

interface SearchResult {
  readonly document_id: string;
  readonly title: string;
  readonly text: string;
  readonly scope: string;
  readonly score: number;
  readonly source_uri: string | null;
  readonly explain?: {
    readonly keyword: ScorePart | null;
    readonly vector: ScorePart | null;
    readonly duplicates: readonly string[];
  };
}

interface SearchResponse {
  readonly results: readonly SearchResult[];
  readonly mode: string;
  readonly explain?: { readonly corrected: Readonly<Record<string, readonly string[]>> };
}

/** `gatehouse vault search`. */
export async function searchVault(query: string, options: SearchVerbOptions): Promise<void> {
  const { topK, mode, agent, scope, explain } = options;
  if (topK !== undefined && !/^\d{1,9}$/.test(topK)) {
    throw new OperatorError(`--top-k takes a whole number, not ${JSON.stringify(topK)}`, undefined, 2);
  }
  for (const path of scope ?? []) checkScope(path);
  const filter = readPairs("--filter", options.filter);
  const { config } = await resolveConfig(options);
  const answer = await withGateway(config, options.workspace, (api) =>
    api.json<SearchResponse>("POST", "/v1/vault/search", {
      query,
      filter,
      ...(topK === undefined ? {} : { top_k: Number(topK) }),
      ...(agent === undefined ? {} : { agent }),
      ...(scope === undefined ? {} : { scopes: scope }),
      ...(mode === undefined ? {} : { mode }),
      ...(explain === undefined ? {} : { explain }),
    }),
  );
  if (options.json) {
    printJson(answer);
    return;
  }
  const asked = mode ?? "hybrid";
  if (answer.mode !== asked) {
    process.stderr.write(`[searched by ${answer.mode}: ${asked} is not available now]\n`);
  }
  const corrected = Object.entries(answer.explain?.corrected ?? {});
  for (const [word, read] of corrected) print(`${lineOf(word)} was read as ${lineOf(read.join(", "))}\n`);
  if (answer.results.length === 0) print("nothing found");
  else print(answer.results.map((result, index) => shown(result, index + 1)).join("\n\n"));
}

function shown(result: SearchResult, place: number): string {
  const { title, scope, score, source_uri, document_id, text } = result;
  const indent = " ".repeat(String(place).length + 2);
  const width = Math.max((process.stdout.columns || COLUMNS) - indent.length, 20);
  return [
    `${place}. ${lineOf(title)}`,
    `${indent}${scope}  ${lineOf(source_uri ?? document_id)}  score ${number(score)}`,
    ...explained(result).map((line) => indent + line),
    ...linesOf(text, width, LINES).map((line) => indent + line),
  ].join("\n");
}

function explained({ explain }: SearchResult): readonly string[] {
  if (!explain) return [];
  const parts = (["keyword", "vector"] as const).flatMap((name) => {
    const part = explain[name];
    if (part === null) return [];
    return [
      part.rank === null ? `${name}: not found` : `${name}: rank ${part.rank}, score ${number(part.score)}`,
    ];
  });
  const same = explain.duplicates.length;
  if (same > 0) parts.push(`${same} more ${same === 1 ? "passage says" : "passages say"} the same`);
  return parts.length === 0 ? [] : [parts.join("; ")];
}

function number(value: number): string {
  return value.toPrecision(3);
}
