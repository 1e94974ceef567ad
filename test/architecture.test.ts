import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { importsOf, type SourceFile, violations } from "./support/architecture.ts";

const SRC = join(import.meta.dir, "..", "src");

async function sources(): Promise<SourceFile[]> {
  const paths = await Array.fromAsync(new Bun.Glob("**/*.{ts,tsx}").scan(SRC));
  return Promise.all(
    paths.sort().map(async (path) => ({
      path: path.replaceAll("\\", "/"),
      text: await Bun.file(join(SRC, path)).text(),
    })),
  );
}

test("imports point down, packages stay in their rooms, files are small, exports are named", async () => {
  const files = await sources();
  expect(files.length).toBeGreaterThan(0);
  expect(violations(files)).toEqual([]);
});

/**
 * A walk that yields with a `setImmediate` of its own shares its turn with the slices of all other walks, and a tenant
 * can begin many at once. Walks use `takeTurn` instead (`src/base/inflow.ts`).
 */
const WITHOUT_TURNS: Readonly<Record<string, string>> = {
  "base/inflow.ts": "gives the turns",
  "gate/token-renewal.ts": "one walk of the node at a time",
  "http/answer/public-files.ts": "bytes in memory; anyone may read, and belongs to no workspace",
  "http/streams/open-callers.ts": "joins changes of one turn",
  "mcp/waits.ts": "the end of the process",
  "store/postgres/lanes.ts": "joins transactions of one turn",
  "store/sqlite/group.ts": "joins transactions of one turn",
  "tasks/events/log.ts": "joins text of one turn",
  "tasks/run/first-write.ts": "joins the writes of one turn",
};

test("walks take turns that all workspaces share", async () => {
  const yielding = (await sources()).filter(
    ({ path, text }) => !path.startsWith("console/") && text.includes("setImmediate("),
  );
  expect(yielding.map(({ path }) => path)).toEqual(Object.keys(WITHOUT_TURNS));
});

const check = (path: string, text: string) => violations([{ path, text }]);

describe("the checker allows", () => {
  test.each([
    ["a lower room", "ledger/ledger.ts", 'import { Db } from "../store/db.ts";'],
    ["the same room", "http/routes/tasks.ts", 'import type { App } from "../app.ts";'],
    ["base from the framework", "agents/run.ts", 'import { now } from "../base/clock.ts";'],
    [
      "the framework from connectors",
      "connectors/tools.ts",
      'import { defineTool } from "../agents/index.ts";',
    ],
    ["the gateway from a verb", "cli/serve.ts", 'import { createGateway } from "../gateway.ts";'],
    ["the console from its server", "http/console.ts", 'import page from "../console/index.html";'],
    ["REST's types in the console", "console/a.ts", 'import type { Task } from "../http/api.ts";'],
    ["proofs in the console", "console/pages/a.ts", 'import { a } from "../../ledger/proof/note.ts";'],
    ["the version", "base/version.ts", 'import { version } from "../../package.json";'],
    ["Elysia in http", "http/routes/agents.ts", 'import { Elysia } from "elysia";'],
    ["SQLite in the vault's index", "vault/index-sqlite.ts", 'import { Database } from "bun:sqlite";'],
    [
      "the MCP client",
      "connectors/mcp-upstream/session.ts",
      'import { C } from "@modelcontextprotocol/sdk/client";',
    ],
    [
      "providers in their files",
      "models/providers/openai.ts",
      'import { createOpenAI } from "@ai-sdk/openai";',
    ],
    ["a format's package in its reader", "vault/read/csv.ts", 'import { parse } from "csv-parse/sync";'],
    ["the stemmer among terms", "vault/terms/words.ts", 'import { stemmer } from "stemmer";'],
    ["sqlite-vec in the engine", "store/sqlite/vec.ts", 'import { getLoadablePath } from "sqlite-vec";'],
    ["PostgreSQL's driver in its file", "store/postgres/driver.ts", 'import pg from "pg";'],
    ["shared rows in a worker", "vault/prepare/a.ts", 'import { keyOf } from "../rows/keys.ts";'],
    ["the engine of the index in its worker", "vault/worker.ts", 'import { a } from "./index-sqlite.ts";'],
    ["the index's port in a search", "vault/search/a.ts", 'import { a } from "../index-store.ts";'],
    ["a boundary in a worker", "vault/index-sqlite.ts", 'import { a } from "../access/memory-scope.ts";'],
    ["the workers' folders elsewhere", "vault/vault.ts", 'import { a } from "./terms/words.ts";'],
    ["other packages", "limits/bucket.ts", 'import { Type } from "typebox";'],
    [
      "an import in a comment",
      "base/a.ts",
      '/**\n * import { Db } from "../store/db.ts";\n */\nexport const a = 1;',
    ],
    ["a proof in a browser", "ledger/verify/bundle/a.ts", 'import { a } from "../../proof/note.ts";'],
    ["proofs elsewhere", "cli/a.ts", 'import { a } from "../ledger/proof/note.ts";'],
    ["400 lines", "base/long.ts", "export {};\n".repeat(400)],
  ])("%s", (_, path, text) => {
    expect(check(path, text)).toEqual([]);
  });
});

describe("the checker refuses", () => {
  test.each([
    ["a higher room", "store/db.ts", 'import { Ledger } from "../ledger/ledger.ts";', "imports from ledger"],
    ["a sibling", "ledger/a.ts", 'import { b } from "../access/b.ts";', "imports from access"],
    ["types too", "models/a.ts", 'import type { Task } from "../tasks/task.ts";', "imports from tasks"],
    ["types inline", "base/a.ts", 'type A = import("../store/db.ts").Db;', "imports from store"],
    [
      "several lines",
      "base/a.ts",
      'import {\n  a,\n  type B,\n} from "../store/db.ts";',
      "imports from store",
    ],
    ["side effects", "base/a.ts", 'import "../store/db.ts";', "imports from store"],
    [
      "dynamic imports",
      "base/a.ts",
      'export const a = await import("../store/db.ts");',
      "imports from store",
    ],
    ["exports from elsewhere", "base/a.ts", 'export * from "../store/db.ts";', "imports from store"],
    ["the root from a room", "http/a.ts", 'import { g } from "../gateway.ts";', "imports from gateway.ts"],
    [
      "more than base in the framework",
      "agents/a.ts",
      'import { c } from "../config/c.ts";',
      "imports from config",
    ],
    [
      "the framework below models",
      "vault/a.ts",
      'import { t } from "../agents/tool.ts";',
      "imports from agents",
    ],
    [
      "most of src in the console",
      "console/a.ts",
      'import { a } from "../base/a.ts";',
      "the console may not",
    ],
    [
      "REST's values in the console",
      "console/api/a.ts",
      'import { a } from "../../http/api.ts";',
      "types alone",
    ],
    ["Node in the console", "console/a.ts", 'import { a } from "node:fs";', "the package node:fs"],
    ["Bun's globals in the console", "console/a.ts", "Bun.hash(1);", "browsers do not have"],
    ["Preact elsewhere", "http/a.ts", 'import { h } from "preact";', "the package preact"],
    [
      "the console elsewhere",
      "cli/a.ts",
      'import page from "../console/index.html";',
      "imports from console",
    ],
    ["the ledger in a browser", "ledger/proof/a.ts", 'import { a } from "../tiles.ts";', "runs in browsers"],
    ["Node in a browser", "ledger/proof/a.ts", 'import { a } from "node:crypto";', "the package node:crypto"],
    ["Bun's globals in a browser", "ledger/proof/a.ts", "Bun.hash(1);", "browsers do not have"],
    ["an unknown room", "shed/a.ts", 'import { a } from "../base/a.ts";', "stands in shed"],
    ["a file outside src", "http/a.ts", 'import { a } from "../../test/a.ts";', "outside src"],
    ["Elysia in the root", "gateway.ts", 'import { Elysia } from "elysia";', "imports the package elysia"],
    ["Elysia's plugins", "mcp/a.ts", 'import { s } from "@elysiajs/stream";', "the package @elysiajs/stream"],
    [
      "SQLite above the store",
      "ledger/a.ts",
      'import { Database } from "bun:sqlite";',
      "the package bun:sqlite",
    ],
    [
      "the MCP SDK",
      "connectors/a.ts",
      'import { C } from "@modelcontextprotocol/sdk/client";',
      "the package",
    ],
    [
      "a provider elsewhere",
      "models/route.ts",
      'import { o } from "@ai-sdk/openai";',
      "the package @ai-sdk/openai",
    ],
    ["the model type below", "gate/a.ts", 'import type { M } from "@ai-sdk/provider";', "the package"],
    ["commander", "config/a.ts", 'import { Command } from "commander";', "the package commander"],
    ["yaml", "cli/a.ts", 'import { parse } from "yaml";', "the package yaml"],
    [
      "a format elsewhere",
      "vault/prepare/a.ts",
      'import { Parser } from "htmlparser2";',
      "the package htmlparser2",
    ],
    [
      "a format on the command line",
      "cli/vault/a.ts",
      'import { Parser } from "htmlparser2";',
      "the package htmlparser2",
    ],
    [
      "the stemmer elsewhere",
      "vault/prepare/a.ts",
      'import { stemmer } from "stemmer";',
      "the package stemmer",
    ],
    [
      "sqlite-vec above the engine",
      "vault/a.ts",
      'import { load } from "sqlite-vec";',
      "the package sqlite-vec",
    ],
    ["PostgreSQL's driver in the engine", "store/postgres/open.ts", 'import pg from "pg";', "the package pg"],
    ...[
      ["the vault's upkeep", "vault/search/a.ts", "../upkeep/remover.ts"],
      ["models", "vault/prepare/a.ts", "../../models/embed/embedder.ts"],
      ["the gate", "vault/read/a.ts", "../../gate/gate.ts"],
      ["spaces", "vault/segments/a.ts", "../rows/spaces.ts"],
      ["a module that only the vault's writers may use", "vault/terms/a.ts", "../write.ts"],
      ["the store", "vault/worker.ts", "../store/db.ts"],
    ].map(
      ([name = "", path = "", target = ""]) =>
        [`${name} in a worker`, path, `import { a } from "${target}";`, "vault's workers may not"] as const,
    ),
    [
      "the engine of the index in a search",
      "vault/search/a.ts",
      'import { a } from "../index-sqlite.ts";',
      "may not know the engine",
    ],
    [
      "the engine's tables among segments",
      "vault/segments/a.ts",
      'import { a } from "../rows/vector-table.ts";',
      "may not know the engine",
    ],
    [
      "SQLite elsewhere in the vault",
      "vault/index-reader.ts",
      'import { Database } from "bun:sqlite";',
      "the package bun:sqlite",
    ],
    ["Bun in the framework", "agents/a.ts", 'import { sleep } from "bun";', "the package bun"],
    ["a default export", "base/a.ts", "export default 1;", "default export"],
    ["a default export by name", "base/a.ts", "const a = 1;\nexport { a as default };", "default export"],
    ["401 lines", "base/long.ts", "export {};\n".repeat(401), "401 lines"],
  ])("%s", (_, path, text, reason) => {
    const found = check(path, text);
    expect(found).toHaveLength(1);
    expect(found[0]).toStartWith(`src/${path} `);
    expect(found[0]).toContain(reason);
  });
});

test("imports are found in every syntax", () => {
  const text = [
    'import a from "a";',
    'import type { B } from "b";',
    'import * as c from "c"; export { d } from "d";',
    'export type { E } from "e";',
    'const f = () => import("f");',
    'const from = "not this";',
    'Array.from("nor this");',
  ].join("\n");
  expect(importsOf({ path: "x.ts", text })).toEqual(["a", "b", "c", "d", "e", "f"]);
});
