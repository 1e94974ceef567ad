import type { Command } from "commander";
import { listAll, withGateway } from "./operator.ts";
import { type ConfigOptions, command, resolveConfig } from "./options.ts";
import { printJson, printTable } from "./output.ts";

interface NodesVerbOptions extends ConfigOptions {
  readonly json?: boolean;
}

interface NodeView {
  readonly id: string;
  readonly version: string;
  readonly since: string;
  readonly last_seen: string;
  readonly tasks: number;
}

/** `nodes`: the servers that share a store. */
export function nodesCommand(): Command {
  return command("nodes", "list the running servers that share the store, the oldest first")
    .option("--json", "print JSON")
    .addHelpText(
      "after",
      `
A server that has not been seen for 8 seconds is given up: others continue its tasks. TASKS is the number of
tasks that it ran when it was last seen.`,
    )
    .action(async (options: NodesVerbOptions) => {
      const { config } = await resolveConfig(options);
      const nodes = await withGateway(config, "default", (api) => listAll<NodeView>(api, "/v1/nodes"));
      if (options.json) printJson(nodes);
      else
        printTable(
          ["NODE", "VERSION", "SINCE", "LAST SEEN", "TASKS"],
          nodes.map(({ id, version, since, last_seen: lastSeen, tasks }) => [
            ...[id, version, since, lastSeen],
            String(tasks),
          ]),
        );
    });
}
