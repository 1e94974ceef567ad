// biome-ignore-all lint/suspicious/noTemplateCurlyInString: a page explains them.
/** The manual pages, from the program's own help and table of settings. */
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.ts";
import { type SettingReference, settingsReference } from "../../src/config/reference.ts";
import { escaped, item, literal, paragraph, section, subsection, title } from "./roff.ts";

export interface ManualEdition {
  readonly version: string;
  /** ISO 8601. */
  readonly date: string;
}

/** gatehouse(1). */
export async function commandManual({ version, date }: ManualEdition): Promise<string> {
  const program = await createProgram([]);
  return page([
    title("gatehouse", 1, date, `gatehouse ${version}`),
    section("NAME"),
    "gatehouse \\- the gate between a company and its AI agents",
    section("SYNOPSIS"),
    `.B gatehouse\n${escaped("COMMAND [OPTION]...")}`,
    section("DESCRIPTION"),
    paragraph(program.description()),
    paragraph(
      "All data is in one directory. Commands work whether or not a server is running on it. `gatehouse serve` runs the server.",
    ),
    section("COMMANDS"),
    ...commandsOf(program, "gatehouse").flatMap(({ name, command }) => commandPart(name, command)),
    section("EXIT STATUS"),
    item("0", "done"),
    item("1", "failed"),
    item("2", "wrong usage"),
    item("3", "could not be verified"),
    section("FILES"),
    item("gatehouse.yaml", "in the data directory, the configuration: see gatehouse.yaml(5)."),
    item("gatehouse.db, ledger.key, secrets.key", "in the data directory, the database and its keys."),
    section("SEE ALSO"),
    "gatehouse.yaml(5)",
  ]);
}

/** gatehouse.yaml(5). */
export function settingsManual({ version, date }: ManualEdition): string {
  return page([
    title("gatehouse.yaml", 5, date, `gatehouse ${version}`),
    section("NAME"),
    "gatehouse.yaml \\- configuration of gatehouse",
    section("DESCRIPTION"),
    paragraph(
      "The file is YAML. An option of the command line takes precedence over an environment variable, a variable over the file, and the file over the default. `gatehouse config check` reports mistakes, and `gatehouse config show` where each value comes from.",
    ),
    paragraph(
      "In the file, ${NAME} is replaced by an environment variable. Every variable can be given as a file: if NAME is unset, the content of the file that NAME_FILE names is used.",
    ),
    section("SETTINGS"),
    ...settingsReference().map(settingPart),
    section("SEE ALSO"),
    "gatehouse(1)",
  ]);
}

function page(parts: readonly string[]): string {
  return `${parts.join("\n")}\n`;
}

interface NamedCommand {
  readonly name: string;
  readonly command: Command;
}

/** The commands that do something, in the order of the help. */
function commandsOf(program: Command, name: string): NamedCommand[] {
  return program
    .createHelp()
    .visibleCommands(program)
    .filter((command) => command.name() !== "help")
    .flatMap((command) => {
      const own = { name: `${name} ${command.name()}`, command };
      return command.commands.length === 0 ? [own] : commandsOf(command, own.name);
    });
}

function commandPart(name: string, command: Command): string[] {
  const help = command.createHelp();
  const usage = `${name} ${command.usage()}`;
  const options = help
    .visibleOptions(command)
    .map((option) => item(help.optionTerm(option), help.optionDescription(option)));
  const after = textAfter(command);
  return [
    subsection(usage),
    paragraph(`${command.description()}.`),
    ...options,
    ...(after === "" ? [] : [literal(after)]),
  ];
}

/** What the help says after its options. */
function textAfter(command: Command): string {
  let text = "";
  const own = command.configureOutput();
  const writeOut = (piece: string) => {
    text += piece;
  };
  command.configureOutput({ ...own, writeOut });
  command.outputHelp();
  command.configureOutput(own);
  return text.slice(command.helpInformation().length).trim();
}

function settingPart(setting: SettingReference): string {
  const { key, variable, flag, help, takes, default_text: text, secret, in_file: inFile } = setting;
  const fallback =
    setting.default === null ? (text ?? (setting.required ? "required" : "none")) : String(setting.default);
  const ways = [variable, flag].filter((way) => way !== null).join(", ");
  const facts = [
    `Takes ${takes}.`,
    `Default: ${fallback}.`,
    ...(ways === "" ? [] : [`Also: ${ways}.`]),
    ...(inFile ? [] : ["Not in the file."]),
    ...(secret ? ["Secret."] : []),
  ];
  return item(key, `${help} ${facts.join(" ")}`);
}
