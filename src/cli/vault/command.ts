import { type Command, Option } from "commander";
import { SEARCH_MODES } from "../../vault/fields.ts";
import { listAll, withGateway } from "../operator.ts";
import { type ConfigOptions, collect, command, plain, resolveConfig } from "../options.ts";
import { printJson, printTable } from "../output.ts";
import type { AddOptions } from "./add.ts";
import { checkScope } from "./arguments.ts";
import { EXTENSIONS } from "./files.ts";
import type { ListedDocument } from "./known.ts";
import { type SearchOptions, searchVault } from "./search.ts";
import { lineOf } from "./text.ts";

const ADD_HELP = `
Read in folders: ${EXTENSIONS.join(" ")}.
Skipped there: other files, hidden ones, node_modules, the data directory. Links inside of a folder are not
followed: what they lead to is found where it lies, or lies outside and is not taken.

A file is one document, found again by its source, the file: URL of its path. Added again it is left as it
is, or replaced under its id where its text, title, type, --scope or --metadata differ. Without --metadata a
document keeps what it has. Documents whose files are gone stay.

Standard output has one line: added 12, replaced 3, unchanged 20, skipped 4, failed 1
With --json it has a line for each file as it is done, and the counts go to standard error:
  {"path","status":"added"|"replaced"|"unchanged"|"skipped"|"failed","id":"doc_…"|null,"title","reason"}
What fails says why on standard error, the rest goes on, and the exit code is 1. Ctrl-C finishes what is on
its way; what was added is left as it is the next time.`;

const SEARCH_HELP = `
A filter's values are text; key:=value compares with a number, true or false.
The --json of a search is what POST /v1/vault/search answers.`;

export function vaultCommand(): Command {
  return plain("vault", "add documents to the vault, search and list them")
    .addCommand(
      verb("add", "add files, and the files in folders, as documents")
        .argument("<path...>", "files and folders")
        .requiredOption("--scope <scope>", "memory scope, such as support or legal/contracts")
        .option(
          "--include <glob>",
          'in folders only files such as "*.md"; may be given several times',
          collect,
        )
        .option("--exclude <glob>", "no files or folders such as drafts; may be given several times", collect)
        .option("--type <media type>", "what the named files are, whatever their names say")
        .option(
          "--metadata <key=value>",
          "may be given several times; key:=value is a number, true, false",
          collect,
        )
        .option("--dry-run", "send nothing, and say for each file what would become of it")
        .option("--json", "print a line of JSON for each file")
        .addHelpText("after", ADD_HELP)
        .action(async (paths: string[], options: AddOptions) => {
          // Loaded on demand: it parses Markdown and HTML for titles.
          const { addFiles } = await import("./add.ts");
          return addFiles(paths, options);
        }),
    )
    .addCommand(
      verb("search", "search the documents' passages")
        .argument("<query>", "what is looked for")
        .option("--scope <scope>", "only here and below; may be given several times", collect)
        .option("--agent <agent>", "inside of this agent's memory scope")
        .option("--top-k <n>", "how many passages, 1 to 100 (default: 10)")
        .addOption(new Option("--mode <mode>", "how to search (default: hybrid)").choices(SEARCH_MODES))
        .option("--filter <key=value>", "documents with this metadata; may be given several times", collect)
        .option("--explain", "say how each passage was found")
        .option("--json", "print JSON")
        .addHelpText("after", SEARCH_HELP)
        .action((query: string, options: SearchOptions) => searchVault(query, options)),
    )
    .addCommand(
      verb("list", "list documents, newest first")
        .option("--scope <scope>", "only here and below")
        .option("--json", "print JSON")
        .action(list),
    );
}

function verb(name: string, description: string): Command {
  return command(name, description).option("--workspace <name>", "workspace", "default");
}

interface ListOptions extends ConfigOptions {
  readonly scope?: string;
  readonly workspace: string;
  readonly json?: boolean;
}

const TITLE_COLUMNS = 60;

async function list(options: ListOptions): Promise<void> {
  if (options.scope !== undefined) checkScope(options.scope);
  const { config } = await resolveConfig(options);
  const filter: Record<string, string> = options.scope === undefined ? {} : { scope: options.scope };
  const documents = await withGateway(config, options.workspace, (api) =>
    listAll<ListedDocument>(api, "/v1/vault/documents", filter),
  );
  if (options.json) {
    printJson(documents);
    return;
  }
  printTable(
    ["ID", "TITLE", "SCOPE", "CHUNKS", "UPDATED", "SOURCE"],
    documents.map((document) => [
      document.id,
      lineOf(document.title, TITLE_COLUMNS),
      document.scope,
      String(document.chunks),
      document.updated_at,
      lineOf(document.source_uri ?? "-"),
    ]),
  );
}
