import { OperatorError } from "../../base/errors.ts";
import { type OperatorApi, withGateway } from "../operator.ts";
import { type ConfigOptions, resolveConfig } from "../options.ts";
import { print, printJson } from "../output.ts";
import { lineOf } from "../vault/text.ts";
import { type ClientEntry, entryRequest, isSwitchedOff, readClientFile } from "./client-file.ts";
import { EntryError } from "./placeholders.ts";
import { type ConnectorBody, type DefinitionOptions, requestOf } from "./request.ts";
import { wrong } from "./values.ts";
import { type ConnectorView, stateOf } from "./view.ts";

export interface AddOptions extends ConfigOptions, DefinitionOptions {
  readonly import?: string;
  readonly only?: readonly string[];
  readonly workspace: string;
  readonly json?: boolean;
}

export async function addConnectors(
  name: string | undefined,
  command: readonly string[],
  options: AddOptions,
): Promise<void> {
  if (options.import !== undefined) return addFrom(options.import, name, options);
  if (options.only !== undefined) throw wrong("--only", "is only for --import");
  if (name === undefined) throw new OperatorError("missing the connector's name", undefined, 2);
  const body = requestOf(name, command, options, process.env);
  const { config } = await resolveConfig(options);
  const added = await withGateway(config, options.workspace, (api) => create(api, body));
  if (options.json) printJson(added);
  else print(stateOf(added));
}

/** The result for an entry of a client's file: an item of `--json`. */
interface AddOutcome {
  readonly entry: string;
  readonly name: string;
  readonly outcome: "added" | "skipped" | "failed";
  /** Why it was skipped or failed. */
  readonly reason: string | null;
  readonly connector: ConnectorView | null;
}

/** The options that work with --import. All others describe a single server. */
const WITH_IMPORT = ["data", "config", "workspace", "json", "import", "only", "scope"];

async function addFrom(file: string, name: string | undefined, options: AddOptions): Promise<void> {
  const stray = Object.keys(options).find((option) => !WITH_IMPORT.includes(option));
  if (name !== undefined || stray !== undefined) {
    throw wrong(
      "--import",
      "cannot be combined with options for a single server; select entries with --only NAME",
    );
  }
  const entries = chosen(readClientFile(file), options.only);
  const { config } = await resolveConfig(options);
  const outcomes = await withGateway(config, options.workspace, async (api) => {
    const all: AddOutcome[] = [];
    // One after the other, because each may start a program, and failures are reported in file order.
    for (const entry of entries) {
      const outcome = await addEntry(api, entry, file, options);
      if (!options.json) say(outcome);
      all.push(outcome);
    }
    return all;
  });
  if (options.json) printJson(outcomes);
  if (outcomes.some(({ outcome }) => outcome === "failed")) process.exitCode = 1;
}

function chosen(
  entries: readonly ClientEntry[],
  only: readonly string[] | undefined,
): readonly ClientEntry[] {
  const missing = only?.find((name) => !entries.some((each) => each.entry === name || each.name === name));
  if (missing !== undefined) {
    const there = entries.map(({ entry }) => lineOf(entry)).join(", ");
    throw wrong("--only", `names ${JSON.stringify(missing)}, which is not in the file; it has: ${there}`);
  }
  return entries.filter(({ entry, name }) => !only || only.includes(entry) || only.includes(name));
}

async function addEntry(
  api: OperatorApi,
  client: ClientEntry,
  file: string,
  { scope }: AddOptions,
): Promise<AddOutcome> {
  const { entry, name, value } = client;
  const left = { entry, name, connector: null };
  if (isSwitchedOff(value)) return { ...left, outcome: "skipped", reason: "it is disabled in the file" };
  try {
    const body = { ...entryRequest(client, file, process.env), ...(scope ? { scopes: scope } : {}) };
    return { entry, name, outcome: "added", reason: null, connector: await create(api, body) };
  } catch (error) {
    if (!(error instanceof EntryError || error instanceof OperatorError)) throw error;
    return { ...left, outcome: "failed", reason: error.message };
  }
}

function say({ entry, name, outcome, reason, connector }: AddOutcome): void {
  if (connector) print(stateOf(connector) + (entry === name ? "" : ` (${lineOf(entry)} in the file)`));
  else process.stderr.write(`${outcome}: ${lineOf(entry)}: ${lineOf(reason ?? "")}\n`);
}

async function create(api: OperatorApi, body: ConnectorBody): Promise<ConnectorView> {
  try {
    return await api.json<ConnectorView>("POST", "/v1/connectors", body);
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error;
    throw new OperatorError(asOption(error.message), error.hint, error.exitCode);
  }
}

/** The options that set the fields named in a refusal, longer names first. */
const OPTIONS: readonly (readonly [RegExp, string])[] = [
  [/^\/transport\/env\/([^:]*)/, "--env $1"],
  [/^\/transport\/headers\/([^:]*)/, "--header $1"],
  [/^\/transport\/url/, "--url"],
  [/^\/transport\/type/, "the transport"],
  [/^\/transport\/(?:command|args[^:]*)/, "the command"],
  [/^\/scopes?[^:]*|^--scope(?=:)/, "--scope"],
  [/^\/spec/, "--openapi"],
  [/^\/base_url/, "--base-url"],
  [/^\/auth[^:]*/, "the authentication"],
];

function asOption(message: string): string {
  const found = OPTIONS.find(([field]) => field.test(message));
  return found ? message.replace(found[0], found[1]) : message;
}
