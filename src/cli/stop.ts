import { existsSync } from "node:fs";
import type { Command } from "commander";
import { OperatorError } from "../base/errors.ts";
import type { Config } from "../config/config.ts";
import { databasePath } from "../store/directory.ts";
import { readRuntime } from "../store/runtime.ts";
import { type OperatorApi, withGateway } from "./operator.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { print, printJson } from "./output.ts";

interface StopVerbOptions extends ConfigOptions {
  readonly json?: boolean;
}

interface WorkspaceStatus {
  readonly name: string;
  readonly status: "active" | "stopped";
}

const DEFAULT_WORKSPACE = "default";

/** `stop-all`: stops everything at once. */
export function stopAllCommand(): Command {
  return command("stop-all", "stop every workspace: cancel all tasks and calls, and refuse new ones")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
In a running server this takes effect immediately, even if the disk is full. Without one, everything is
stopped at the next start. Nothing works again until "gatehouse resume-all", or until each workspace is
resumed. Workspaces created later are not affected.`,
    )
    .action((options: StopVerbOptions) => setAll("stop", options));
}

export function resumeAllCommand(): Command {
  return command("resume-all", "resume every stopped workspace")
    .option("--json", "print JSON")
    .action((options: StopVerbOptions) => setAll("resume", options));
}

async function setAll(verb: "stop" | "resume", options: StopVerbOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  const { data } = await withExisting(config, DEFAULT_WORKSPACE, (api) =>
    api.json<{ data: WorkspaceStatus[] }>("POST", `/operator/workspaces/${verb}`, {}),
  );
  if (options.json) printJson(data);
  else for (const { name, status } of data) print(`${name}\t${status}`);
}

/** `workspace stop NAME` and `workspace resume NAME`. */
export function workspaceStatusCommand(verb: "stop" | "resume", description: string): Command {
  return command(verb, description)
    .argument("<name>", "the workspace's name")
    .option("--json", "print JSON")
    .action(async (name: string, options: StopVerbOptions) => {
      const { config } = await resolveConfig(options);
      const workspace = await withExisting(config, name, (api) =>
        api.json<WorkspaceStatus>("POST", `/v1/workspace/${verb}`, {}),
      );
      if (options.json) printJson(workspace);
      else print(`${workspace.name}\t${workspace.status}`);
    });
}

/**
 * Unlike other commands, creates neither a data directory nor a schema: stopping the wrong place must not look like success. A
 * running server is not asked for its store, which may be away.
 */
async function withExisting<T>(
  config: Config,
  workspace: string,
  work: (api: OperatorApi) => Promise<T>,
): Promise<T> {
  const { dataDir, store } = config;
  if (store && !readRuntime(dataDir)) {
    const { schemaVersion } = await import("../store/postgres/upgrade.ts");
    if ((await schemaVersion(store.directUrl ?? store.url)) === 0)
      throw new OperatorError(
        "there is no Gatehouse in the store's database, which is empty",
        "correct `store`",
      );
  } else if (!store && !existsSync(databasePath(dataDir))) {
    throw new OperatorError(
      `there is no Gatehouse in ${dataDir}`,
      "choose its data directory with --data, or GATEHOUSE_DATA",
    );
  }
  return withGateway(config, workspace, work);
}
