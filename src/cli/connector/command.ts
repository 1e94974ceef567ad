import { type Command, Option } from "commander";
import { listAll, withGateway } from "../operator.ts";
import { type ConfigOptions, collect, command, plain, resolveConfig } from "../options.ts";
import { print, printJson } from "../output.ts";
import type { AddOptions } from "./add.ts";
import { type ConnectorView, printConnectors, printTools, stateOf } from "./view.ts";

const ADD_HELP = `
What is connected is one of:
  gatehouse connector add files -- npx -y @modelcontextprotocol/server-filesystem /srv/docs
  gatehouse connector add docs --url https://mcp.example.org/mcp --header 'Authorization: Bearer \${TOKEN}'
  gatehouse connector add shop --openapi shop.yaml --bearer '\${SHOP_TOKEN}' --scope 'get_*'
  gatehouse connector add --import ~/.cursor/mcp.json

\${NAME} in the value of an option stands for that environment variable, or for what is in the file that
NAME_FILE names, so that no secret is in the list of processes. Quote it: '\${NAME}'. What is given is
encrypted in the data directory, and shown nowhere.

A program is started by the gateway, and sees of its environment what --env gives; PATH and HOME too, where
it is named without a path. What cannot be reached now is added all the same, and reached later.

--import takes the file of a client as it is: claude_desktop_config.json, .mcp.json, .cursor/mcp.json,
.vscode/mcp.json. \${env:NAME} is filled in here. What fails says why, the rest goes on, the exit code is 1.`;

export function connectorCommand(): Command {
  return plain("connector", "let MCP servers and HTTP APIs in, list and remove them")
    .addCommand(addCommand())
    .addCommand(
      verb("list", "list connectors, by name")
        .option("--tools", "list their tools, with those that may destroy or change something")
        .option("--json", "print JSON")
        .action(list),
    )
    .addCommand(
      verb("remove", "remove a connector, its secrets and its tools").argument("<name>").action(remove),
    )
    .addCommand(
      verb("refresh", "ask a connector for its tools anew")
        .argument("<name>")
        .option("--json", "print JSON")
        .action(refresh),
    );
}

function addCommand(): Command {
  return verb("add", "let a connector in: an MCP server, or an API that an OpenAPI document describes")
    .argument("[name]", "a to z, 0 to 9 and _, such as github; its tools are github.<tool>")
    .argument("[command...]", "after --: the program of an MCP server, and its arguments")
    .option("--env <KEY=value>", "for the program; KEY alone takes this shell's; several times", collect)
    .option("--url <url>", "of an MCP server")
    .addOption(
      new Option(
        "--transport <transport>",
        "http (Streamable HTTP, the default) or sse, for a --url",
      ).choices(["http", "sse"]),
    )
    .option("--header <Name: value>", "with each request to the --url; several times", collect)
    .option("--openapi <spec>", "of an API: the document's file or URL (JSON or YAML)")
    .option("--base-url <url>", "of the API (default: the document's first server)")
    .option("--bearer <token>", "the API's token")
    .option("--basic <user:password>", "the API's user and password")
    .option("--auth-header <NAME=value>", "the API's key in a header")
    .option("--auth-query <NAME=value>", "the API's key in the query")
    .option("--scope <glob>", "only tools such as 'search_*'; several times (default: all)", collect)
    .option("--import <file>", "add the servers of an MCP client's configuration")
    .option("--only <name>", "of the file this one; several times", collect)
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
