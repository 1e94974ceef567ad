import { type Command, Option } from "commander";
import { SEARCH_MODES } from "../../vault/fields.ts";
import { listAll, withGateway } from "../operator.ts";
import { type ConfigOptions, collect, command, plain, resolveConfig } from "../options.ts";
import { printJson, printTable } from "../output.ts";
import type { AddOptions } from "./add.ts";
import { checkScope } from "./arguments.ts";
import { EXTENSIONS } from "./files.ts";
import type { ExistingDocument } from "./known.ts";
import { type SearchVerbOptions, searchVault } from "./search.ts";
import { lineOf } from "./text.ts";

const ADD_HELP = `
Read in folders: ${EXTENSIONS.join(" ")}.
Skipped in folders: other files, hidden files, node_modules, the data directory. Links within a folder are
not followed: their targets are either in the folder anyway, or outside and not added.

Each file is one document, identified by its source, the file: URL of its path. If added again, it is left
unchanged, or replaced under its id if its text, title, type, --scope or --metadata differ. Without --metadata
a document keeps its metadata. Documents whose files have been removed stay.

Standard output has one line: added 12, replaced 3, unchanged 20, skipped 4, failed 1
With --json it has one line per finished file, and the counts go to standard error:
  {"path","status":"added"|"replaced"|"unchanged"|"skipped"|"failed","id":"doc_…"|null,"title","reason"}
If a file fails, its reason goes to standard error, the rest continue, and the exit code is 1. Ctrl-C finishes
the files in progress; documents already added are left unchanged the next time.`;

const SEARCH_HELP = `
A filter's values are text; key:=value compares with a number, true or false.
--json prints the answer of POST /v1/vault/search.`;

export function vaultCommand(): Command {
  return plain("vault", "add documents to the vault, search and list them")
    .addCommand(
      verb("add", "add files, and the files in folders, as documents")
        .argument("<path...>", "files and folders")
        .requiredOption("--scope <scope>", "memory scope, such as support or legal/contracts")
        .option("--include <glob>", 'in folders, only files such as "*.md" (repeatable)', collect)
        .option("--exclude <glob>", "skip files or folders such as drafts (repeatable)", collect)
        .option("--type <media type>", "the type of the named files, whatever their extensions")
        .option(
          "--metadata <key=value>",
          "metadata; key:=value for a number, true or false (repeatable)",
          collect,
        )
        .option("--dry-run", "send nothing, and print what would happen to each file")
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
        .argument("<query>", "what to search for")
        .option("--scope <scope>", "only here and below (repeatable)", collect)
        .option("--agent <agent>", "within this agent's memory scope")
        .option("--top-k <n>", "how many passages, 1 to 100 (default: 10)")
        .addOption(new Option("--mode <mode>", "how to search (default: hybrid)").choices(SEARCH_MODES))
        .option("--filter <key=value>", "only documents with this metadata (repeatable)", collect)
        .option("--explain", "show how each passage was found")
        .option("--json", "print JSON")
        .addHelpText("after", SEARCH_HELP)
        .action((query: string, options: SearchVerbOptions) => searchVault(query, options)),
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
    listAll<ExistingDocument>(api, "/v1/vault/documents", filter),
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
