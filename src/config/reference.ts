// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the page explains them.
import type { Setting } from "./setting.ts";
import { OTHER_VARIABLES, SETTINGS } from "./table.ts";

/** The configuration reference in Markdown, from the table of settings. */
export function configReference(): string {
  const rows = SETTINGS.map((row) =>
    tableRow([
      code(row.key),
      [row.env, row.flag].flatMap((way) => (way === undefined ? [] : code(way))).join(", ") || "file only",
      defaultOf(row),
      `${row.help} Takes ${row.expects}.${row.inFile ? "" : " Not in the file."}${row.secret ? " Secret." : ""}`,
    ]),
  );
  const others = [...OTHER_VARIABLES].map(([name, help]) => tableRow([code(name), help]));
  return `${[
    "# Configuration",
    "",
    "A flag wins over an environment variable, a variable over the file, the file over the default. The file is",
    "YAML: the one that `--config` names, else `gatehouse.yaml` in the data directory. A key or a `GATEHOUSE_` variable",
    "that is not listed here is an error. `gatehouse config check` finds what is wrong, `gatehouse config show` tells",
    "where each value comes from.",
    "",
    "In the file, `${NAME}` stands for an environment variable and `$${` for the characters `${`. Every variable, here",
    "and in `${NAME}`, can be given as a file: where `NAME` is unset, the trimmed content of the file that `NAME_FILE`",
    "names is taken. An empty variable counts as unset. Relative paths start at the working directory, those in the file",
    "at the file's directory.",
    "",
    "| setting | variable, flag | default | meaning |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
    "Without `tiers`, tier 1 `economy` and tier 2 `standard` are made from what is there: `OPENAI_API_KEY`,",
    "`ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, the models of a local Ollama, and always last `builtin/extractive`. With",
    "`tiers`, they are used exactly.",
    "",
    "## Variables that are not settings",
    "",
    "| variable | meaning |",
    "| --- | --- |",
    ...others,
  ].join("\n")}\n`;
}

function defaultOf(row: Setting): string {
  if (row.default !== undefined) return code(String(row.default));
  return row.defaultText ?? (row.required ? "required" : "none");
}

function tableRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

function code(text: string): string {
  return `\`${text}\``;
}
