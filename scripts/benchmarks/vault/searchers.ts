import Type from "typebox";
import { validator } from "../../../src/base/schema.ts";
import { requestText } from "../load/request.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { type Mode, VaultClient } from "./client.ts";
import { type Passages, SCOPES, scopeName } from "./passages.ts";

/** Agents that search at the same time. */
export const SEARCHERS = 10;
export const TOP_K = 10;
/** Different questions of each agent. */
const QUERIES = 300;
/** Questions of each agent whose answers are checked in detail. */
const CHECKED = 10;

/** What an agent may see: its own scope, or the whole workspace. */
export type Reach = "scope" | "all";

export const PLACES: Readonly<Record<Reach, string>> = { scope: "in one scope", all: "over all scopes" };

/** An agent that searches, with a token that acts as it. */
export interface Searcher {
  readonly token: string;
  /** The agent's memory scope; `/` is the whole workspace. */
  readonly scope: string;
  readonly queries: readonly string[];
}

/** A data directory with the large collection, and its searchers. */
export interface FilledVault {
  readonly dataDir: string;
  readonly searchers: Readonly<Record<Reach, readonly Searcher[]>>;
}

const issued = validator(Type.Object({ secret: Type.String() }));

export async function createSearchers(
  gatehouse: Gatehouse,
  passages: Passages,
  reach: Reach,
): Promise<Searcher[]> {
  const searchers: Searcher[] = [];
  for (let index = 0; index < SEARCHERS; index++) {
    const name = `searcher-${reach}-${index}`;
    const scope = reach === "all" ? "/" : scopeName((index * SCOPES) / SEARCHERS);
    const owner = "benchmarks@gatehouse.example";
    await gatehouse.call(201, "POST", "/v1/agents", { name, owner, memory_scope: scope });
    const { secret } = issued.parse(
      await gatehouse.call(201, "POST", "/v1/tokens", { name, agent: name, scopes: ["vault:read"] }),
    );
    const queries = Array.from({ length: QUERIES }, (_, query) => passages.query(index * QUERIES + query));
    searchers.push({ token: secret, scope, queries });
  }
  return searchers;
}

/** The load of these searchers: one connection each, with every question in turn. */
export function searchLoad(searchers: readonly Searcher[], mode: Mode) {
  return {
    request: searchers.map(({ token, queries }) =>
      queries.map((query) =>
        requestText("POST", "/v1/vault/search", { token, body: { query, top_k: TOP_K, mode } }),
      ),
    ),
    connections: searchers.length,
    spreadMs: 0,
    expect: { status: 200, texts: ['"results":[{', `"mode":"${mode}"`] },
  };
}

/**
 * Makes some searches of each agent and checks the whole answers, which the load generator does not do.
 * @throws Error if an answer is too short, or contains something from outside the boundary
 */
export async function checkAnswers(
  gatehouse: Gatehouse,
  searchers: readonly Searcher[],
  mode: Mode,
): Promise<void> {
  for (const { token, scope, queries } of searchers) {
    const client = new VaultClient(gatehouse.port, token);
    for (const query of queries.slice(0, CHECKED)) {
      const found = await client.search({ query, top_k: TOP_K, mode });
      if (found.length === 0) throw new Error(`nothing was found for “${query}” in ${scope}`);
      const outside = found.find((passage) => scope !== "/" && passage.scope !== scope);
      if (outside !== undefined) throw new Error(`a passage of ${outside.scope} was shown in ${scope}`);
    }
  }
}
