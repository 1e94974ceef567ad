import { type Command, Option } from "commander";
import { NAMED_SCOPES } from "../access/scopes.ts";
import { createSecret } from "../access/secret.ts";
import { systemRandom } from "../base/ids.ts";
import { listAll, withGateway } from "./operator.ts";
import { type ConfigOptions, collect, command, plain, resolveConfig } from "./options.ts";
import { print, printJson, printTable } from "./output.ts";

interface TokenVerbOptions extends ConfigOptions {
  readonly workspace: string;
  readonly json?: boolean;
}

interface TokenView {
  readonly id: string;
  readonly name: string;
  readonly agent: string | null;
  readonly scopes: readonly string[];
  readonly expires_at: string | null;
  readonly last_used_at: string | null;
  readonly secret: string;
}

interface CreateOptions extends TokenVerbOptions {
  readonly name: string;
  readonly agent?: string;
  readonly scope?: readonly string[];
  readonly expires?: string;
  readonly toolsMode?: "all" | "search";
  readonly person?: string;
  readonly role?: string;
}

const SCOPES_HELP = `
Scopes:
${NAMED_SCOPES.map((scope) => `  ${scope}`).join("\n")}
  tools:<glob>       tools that its tasks may list, such as tools:vault.*
  admin              all of them`;

export function tokenCommand(): Command {
  return plain("token", "issue, list, rotate and revoke tokens")
    .addCommand(
      verb("create", "issue a token; only its secret is printed, and only this once")
        .requiredOption("--name <name>", "what it is for")
        .option("--agent <agent>", "the agent that it acts as")
        .option(
          "--scope <scope>",
          "what it may do, see below (repeatable; default for an agent: run its tasks)",
          collect,
        )
        .option("--expires <duration>", "such as 90d or 12h (default: never)")
        .addOption(
          new Option(
            "--tools-mode <mode>",
            "over MCP: all tools listed (the default), or two that search and call the others",
          ).choices(["all", "search"]),
        )
        .option("--person <person>", "the person who holds it")
        .option("--role <role>", "the role in which they hold it")
        .option("--json", "print the whole token as JSON")
        .addHelpText("after", SCOPES_HELP)
        .action(create),
    )
    .addCommand(verb("list", "list tokens, newest first").option("--json", "print JSON").action(list))
    .addCommand(
      verb("rotate", "give a token a new secret; only the secret is printed")
        .argument("<id>", "tok_…")
        .option("--grace <duration>", "how long the old secret still works, such as 10m", "0s")
        .action(rotate),
    )
    .addCommand(verb("revoke", "revoke a token immediately").argument("<id>", "tok_…").action(revoke))
    .addCommand(
      plain("secret", "print a new secret for GATEHOUSE_ADMIN_TOKEN; nothing is stored").action(() =>
        print(createSecret(systemRandom)),
      ),
    );
}

function verb(name: string, description: string): Command {
  return command(name, description).option("--workspace <name>", "workspace", "default");
}

async function create(options: CreateOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  const issued = await withGateway(config, options.workspace, (api) =>
    api.json<TokenView>("POST", "/v1/tokens", {
      name: options.name,
      ...(options.agent === undefined ? {} : { agent: options.agent }),
      ...(options.scope === undefined ? {} : { scopes: options.scope }),
      ...(options.expires === undefined ? {} : { expires_in: options.expires }),
      ...(options.toolsMode === undefined ? {} : { tools_mode: options.toolsMode }),
      ...(options.person === undefined ? {} : { person: options.person }),
      ...(options.role === undefined ? {} : { role: options.role }),
    }),
  );
  if (options.json) printJson(issued);
  else print(issued.secret);
}

async function list(options: TokenVerbOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  const tokens = await withGateway(config, options.workspace, (api) => listAll<TokenView>(api, "/v1/tokens"));
  if (options.json) {
    printJson(tokens);
    return;
  }
  printTable(
    ["ID", "NAME", "AGENT", "SCOPES", "EXPIRES", "LAST USED"],
    tokens.map((token) => [
      token.id,
      token.name,
      token.agent ?? "-",
      token.scopes.join(" "),
      token.expires_at ?? "never",
      token.last_used_at ?? "never",
    ]),
  );
}

async function rotate(id: string, options: TokenVerbOptions & { readonly grace: string }): Promise<void> {
  const { config } = await resolveConfig(options);
  const path = `/v1/tokens/${encodeURIComponent(id)}/rotate`;
  const issued = await withGateway(config, options.workspace, (api) =>
    api.json<TokenView>("POST", path, { grace: options.grace }),
  );
  print(issued.secret);
}

async function revoke(id: string, options: TokenVerbOptions): Promise<void> {
  const { config } = await resolveConfig(options);
  await withGateway(config, options.workspace, (api) =>
    api.json<undefined>("DELETE", `/v1/tokens/${encodeURIComponent(id)}`),
  );
}
