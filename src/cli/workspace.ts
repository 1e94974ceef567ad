import type { Command } from "commander";
import { withGateway } from "./operator.ts";
import { type ConfigOptions, command, plain, resolveConfig } from "./options.ts";
import { print, printJson, printTable } from "./output.ts";
import { workspaceStatusCommand } from "./stop.ts";

interface WorkspaceVerbOptions extends ConfigOptions {
  readonly json?: boolean;
}

interface WorkspaceView {
  readonly name: string;
  readonly status: string;
  readonly created_at: string;
}

const PATH = "/operator/workspaces";

export function workspaceCommand(): Command {
  return plain("workspace", "create, list, stop and resume workspaces, which share nothing with each other")
    .addCommand(
      command("create", "create a workspace")
        .argument("<name>", "lower-case letters, digits, - and _")
        .option("--json", "print JSON")
        .action(async (name: string, options: WorkspaceVerbOptions) => {
          const { config } = await resolveConfig(options);
          const made = await withGateway(config, "default", (api) =>
            api.json<WorkspaceView>("POST", PATH, { name }),
          );
          if (options.json) printJson(made);
          else print(made.name);
        }),
    )
    .addCommand(
      command("list", "list workspaces by name")
        .option("--json", "print JSON")
        .action(async (options: WorkspaceVerbOptions) => {
          const { config } = await resolveConfig(options);
          const { data } = await withGateway(config, "default", (api) =>
            api.json<{ data: WorkspaceView[] }>("GET", PATH),
          );
          if (options.json) printJson(data);
          else
            printTable(
              ["NAME", "CREATED", "STATUS"],
              data.map((workspace) => [workspace.name, workspace.created_at, workspace.status]),
            );
        }),
    )
    .addCommand(workspaceStatusCommand("stop", "cancel everything a workspace does, and refuse new work"))
    .addCommand(workspaceStatusCommand("resume", "resume a stopped workspace"));
}
