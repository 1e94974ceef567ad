import { type Command, Option } from "commander";
import { listAll, withGateway } from "../operator.ts";
import { type ConfigOptions, collect, command, plain, resolveConfig } from "../options.ts";
import { print, printJson } from "../output.ts";
import type { AddOptions } from "./add.ts";
import { type ConnectorView, printConnectors, printTools, stateOf } from "./view.ts";

const ADD_HELP = `
Add one of:
  gatehouse connector add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  gatehouse connector add docs --url https://mcp.example.org/mcp --header 'Authorization: Bearer \${TOKEN}'
  gatehouse connector add shop --openapi shop.yaml --bearer '\${SHOP_TOKEN}' --scope 'get_*'
  gatehouse connector add --import ~/.cursor/mcp.json

\${NAME} in the value of an option is replaced by that environment variable, or by the content of the file that
NAME_FILE names, so that no secret appears in the list of processes. Quote it: '\${NAME}'. Values are
encrypted in the data directory and never shown.

The gateway starts a program with only the variables given by --env, plus PATH and HOME if it is named
without a path. A connector that cannot be reached now is still added, and is reached later.

--import reads the file of a client unchanged: claude_desktop_config.json, .mcp.json, .cursor/mcp.json,
.vscode/mcp.json. \${env:NAME} is filled in here. If a server fails, its reason is
printed, the rest continue, and the exit code is 1.`;

export function connectorCommand(): Command {
  return plain("connector", "add, list and remove MCP servers and HTTP APIs")
    .addCommand(addCommand())
    .addCommand(
      verb("list", "list connectors by name")
        .option("--tools", "also list their tools, and which of them may destroy or change something")
        .option("--json", "print JSON")
        .action(list),
    )
    .addCommand(
      verb("remove", "remove a connector, its secrets and its tools").argument("<name>").action(remove),
    )
    .addCommand(
      verb("refresh", "refresh a connector's tools")
        .argument("<name>")
        .option("--json", "print JSON")
        .action(refresh),
    );
}

function addCommand(): Command {
  return verb("add", "add a connector: an MCP server, or an API described by an OpenAPI document")
    .argument("[name]", "a to z, 0 to 9 and _, such as github; its tools are github.<tool>")
    .argument("[command...]", "after --: the program of an MCP server, and its arguments")
    .option(
      "--env <KEY=value>",
      "a variable for the program; KEY alone copies it from this shell (repeatable)",
      collect,
    )
    .option("--url <url>", "the URL of an MCP server")
    .addOption(
      new Option("--transport <transport>", "for --url: http (Streamable HTTP, the default) or sse").choices([
        "http",
        "sse",
      ]),
    )
    .option("--header <Name: value>", "a header for each request to the --url (repeatable)", collect)
    .option("--openapi <spec>", "the file or URL of an API's OpenAPI document (JSON or YAML)")
    .option("--base-url <url>", "the API's base URL (default: the document's first server)")
    .option("--bearer <token>", "the API's token")
    .option("--basic <user:password>", "the API's user and password")
    .option("--auth-header <NAME=value>", "the API's key in a header")
    .option("--auth-query <NAME=value>", "the API's key in the query")
    .option("--scope <glob>", "only tools that match, such as 'search_*' (repeatable; default: all)", collect)
    .option("--import <file>", "add the servers of an MCP client's configuration")
    .option("--only <name>", "only this server of the file (repeatable)", collect)
    .option("--json", "print JSON")
    .addHelpText("after", ADD_HELP)
    .action(async (name: string | undefined, words: string[], options: AddOptions) => {
      const { addConnectors } = await import("./add.ts");
      return addConnectors(name, words, options);
    });
}

function verb(name: string, description: string): Command {
  return command(name, description).option("--workspace <name>", "workspace", "default");
}

interface WorkspaceOptions extends ConfigOptions {
  readonly workspace: string;
  readonly json?: boolean;
}

async function list(options: WorkspaceOptions & { readonly tools?: boolean }): Promise<void> {
  const { config } = await resolveConfig(options);
  const connectors = await withGateway(config, options.workspace, (api) =>
    listAll<ConnectorView>(api, "/v1/connectors"),
  );
  if (options.json) printJson(connectors);
  else if (options.tools) printTools(connectors);
  else printConnectors(connectors);
}

async function remove(name: string, options: WorkspaceOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  await withGateway(config, options.workspace, (api) =>
    api.json<undefined>("DELETE", `/v1/connectors/${encodeURIComponent(name)}`),
  );
}

async function refresh(name: string, options: WorkspaceOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  const connector = await withGateway(config, options.workspace, (api) =>
    api.json<ConnectorView>("POST", `/v1/connectors/${encodeURIComponent(name)}/refresh`),
  );
  if (options.json) printJson(connector);
  else print(stateOf(connector));
  // The purpose was to read its tools, and that failed.
  if (connector.status !== "ready") process.exitCode = 1;
}
