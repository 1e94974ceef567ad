import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { ServerProcess } from "../../support/process.ts";
import { AGENT, type Desk } from "../support.ts";

/** A data directory with an agent and its ledger, which was served and stopped. */
export async function servedOnce(desk: Desk, data = "gatehouse-data", agent = AGENT.name): Promise<void> {
  const server = await desk.serve(["--data", data]);
  const token = readFileSync(join(desk.cwd, data, "admin.token"), "utf8").trim();
  const made = await desk.call(server, token, "POST", "/v1/agents", { ...AGENT, name: agent });
  if (made.status !== 201) throw new Error(await made.text());
  await server.end("SIGTERM");
}

/** The files of a directory with their content and times: equal if nothing in it has changed. */
export function stateOf(directory: string, except = /^$/): ReadonlyMap<string, string> {
  const names = filesIn(directory).filter((name) => !except.test(name));
  return new Map(
    names.map((name) => {
      const path = join(directory, name);
      return [name, `${statSync(path).mtimeMs} ${readFileSync(path).toString("base64")}`];
    }),
  );
}

/** Without the folder in which Bun keeps what it compiled. */
export function filesIn(directory: string): string[] {
  return readdirSync(directory)
    .filter((name) => name !== ".bun")
    .sort();
}

export async function entriesOf(desk: Desk, server: ServerProcess, token: string, query = "?limit=200") {
  const answer = await desk.call(server, token, "GET", `/v1/ledger${query}`);
  const { data } = (await answer.json()) as {
    data: { action: string; actor: string; outcome: string; detail?: Record<string, unknown> }[];
  };
  return data;
}
