import type { Command } from "commander";
import { readRuntime } from "../store/runtime.ts";
import { bytesText } from "./doctor/finding.ts";
import { withServer } from "./operator.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { print, printJson, printTable } from "./output.ts";

interface StatusOptions extends ConfigOptions {
  readonly json?: boolean;
}

interface ServerStatus {
  readonly version: string;
  readonly commit: string | null;
  readonly pid: number;
  readonly started_at: string;
  readonly store: "sqlite" | "postgres";
  readonly ready: boolean;
  readonly failing: readonly string[];
  readonly memory_bytes: number;
  readonly connectors: { readonly ready: number; readonly failing: readonly string[] };
  readonly workspaces: readonly {
    readonly name: string;
    readonly status: "active" | "stopped";
    readonly tasks_running: number;
    readonly tasks_queued: number;
    readonly ledger_entries: number;
  }[];
}

const NOT_READY = 1;

/** `status`: the running server of a data directory. */
export function statusCommand(): Command {
  return command("status", "show the state of the running server")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
The exit code is 1 if no server runs on the data directory, or if it is not ready. "gatehouse doctor" says what
is wrong; "gatehouse nodes" lists all servers that share a store.`,
    )
    .action(status);
}

async function status({ json = false, ...options }: StatusOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  const found = await withServer(config, "default", (api) =>
    api.json<ServerStatus>("GET", "/operator/status"),
  );
  const url = readRuntime(config.dataDir)?.url ?? "";
  if (json) printJson({ url, ...found });
  else printStatus(url, found);
  if (!found.ready) process.exitCode = NOT_READY;
}

function printStatus(url: string, found: ServerStatus): void {
  const { version, pid, started_at, store, ready, failing, memory_bytes, connectors, workspaces } = found;
  print(`Gatehouse ${version} is running at ${url} (process ${pid}) since ${started_at}.`);
  print(ready ? "It is ready." : `It is not ready: ${failing.join(", ")}.`);
  print(`Store: ${store}. Memory: ${bytesText(memory_bytes)}. Connectors ready: ${connectors.ready}.`);
  if (connectors.failing.length > 0)
    print(`Connectors that are not ready: ${connectors.failing.join(", ")}.`);
  print("");
  printTable(
    ["WORKSPACE", "STATUS", "RUNNING", "QUEUED", "ENTRIES"],
    workspaces.map((each) => [
      ...[each.name, each.status],
      ...[each.tasks_running, each.tasks_queued, each.ledger_entries].map(String),
    ]),
  );
}
