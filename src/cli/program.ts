import { Command } from "commander";
import { VERSION } from "../base/version.ts";

const EXAMPLES = `
Examples:
  gatehouse serve                                   serve on 127.0.0.1:8420, data in ./gatehouse-data
  gatehouse token create --name ci --scope tasks:write --scope tasks:read
  gatehouse token create --name helper --agent helper --expires 90d
  gatehouse task run --agent helper "What is new?"  dispatch a task and stream its answer
  gatehouse vault add ./docs --scope support        add a folder's documents, which agents then search
  gatehouse vault search "How long do refunds take?"
  gatehouse connector add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  gatehouse models                                  configured models, prices, and which can be reached
  gatehouse config show                             every setting, its value, and where it comes from

Commands work whether or not a server is running on the data directory.
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 could not be verified.`;

/** In the order of the help. Each is loaded when it is used: with all of them, a start took 9 ms longer. */
const COMMANDS: ReadonlyMap<string, () => Promise<Command>> = new Map([
  ["serve", async () => (await import("./serve.ts")).serveCommand()],
  ["console", async () => (await import("./console.ts")).consoleCommand()],
  ["mcp", async () => (await import("./mcp.ts")).mcpCommand()],
  ["task", async () => (await import("./task.ts")).taskCommand()],
  ["vault", async () => (await import("./vault/command.ts")).vaultCommand()],
  ["token", async () => (await import("./token.ts")).tokenCommand()],
  ["workspace", async () => (await import("./workspace.ts")).workspaceCommand()],
  ["stop-all", async () => (await import("./stop.ts")).stopAllCommand()],
  ["resume-all", async () => (await import("./stop.ts")).resumeAllCommand()],
  ["connector", async () => (await import("./connector/command.ts")).connectorCommand()],
  ["ledger", async () => (await import("./ledger/command.ts")).ledgerCommand()],
  ["reseal", async () => (await import("./reseal.ts")).resealCommand()],
  ["backup", async () => (await import("./backup/command.ts")).backupCommand()],
  ["restore", async () => (await import("./restore.ts")).restoreCommand()],
  ["status", async () => (await import("./status.ts")).statusCommand()],
  ["doctor", async () => (await import("./doctor/command.ts")).doctorCommand()],
  ["store", async () => (await import("./store/command.ts")).storeCommand()],
  ["config", async () => (await import("./config.ts")).configCommand()],
  ["models", async () => (await import("./models.ts")).modelsCommand()],
  ["nodes", async () => (await import("./nodes.ts")).nodesCommand()],
  ["completion", async () => (await import("./completion/command.ts")).completionCommand()],
  ["version", async () => (await import("./version.ts")).versionCommand()],
]);

/** The command line: the command that it begins with, or all of them, which help and wrong usage name. */
export async function createProgram(argv: readonly string[]): Promise<Command> {
  const program = new Command("gatehouse")
    .description(
      "The gate between a company and its AI agents: which models, tools and documents each may use, and the evidence.",
    )
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .showHelpAfterError("(add --help for usage)")
    .addHelpText("after", EXAMPLES)
    .configureHelp({ sortSubcommands: false, showGlobalOptions: false });
  const named = COMMANDS.get(argv[0] ?? "");
  for (const load of named ? [named] : COMMANDS.values()) program.addCommand(await load());
  return program.exitOverride();
}
