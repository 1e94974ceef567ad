// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the page explains them.
import type { Setting } from "./setting.ts";
import { OTHER_VARIABLES, SETTINGS } from "./table.ts";

/** A setting, as programs read it. */
export interface SettingReference {
  readonly key: string;
  /** Null if only the file can set it. */
  readonly variable: string | null;
  readonly flag: string | null;
  readonly in_file: boolean;
  readonly required: boolean;
  readonly secret: boolean;
  /** Null if there is none, or if it is computed as `default_text` says. */
  readonly default: string | number | boolean | null;
  readonly default_text: string | null;
  /** What values it takes, in words. */
  readonly takes: string;
  readonly help: string;
}

/** All settings, in the order of the reference. */
export function settingsReference(): readonly SettingReference[] {
  return SETTINGS.map((row) => ({
    key: row.key,
    variable: row.env ?? null,
    flag: row.flag ?? null,
    in_file: row.inFile,
    required: row.required,
    secret: row.secret,
    default: row.default ?? null,
    default_text: row.defaultText ?? null,
    takes: row.expects,
    help: row.help,
  }));
}

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
    "A flag takes precedence over an environment variable, a variable over the file, and the file over the default. The",
    "file is YAML: the one named by `--config`, else `gatehouse.yaml` in the data directory. A key or a `GATEHOUSE_`",
    "variable that is not listed here is an error. `gatehouse config check` reports mistakes; `gatehouse config show`",
    "shows where each value comes from.",
    "",
    "In the file, `${NAME}` is replaced by an environment variable, and `$${` by the characters `${`. Every variable,",
    "here and in `${NAME}`, can be given as a file: if `NAME` is unset, the trimmed content of the file named by",
    "`NAME_FILE` is used. An empty variable counts as unset. Relative paths are resolved against the working directory;",
    "those in the file, against the file's directory.",
    "",
    "| setting | variable, flag | default | meaning |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
    "Without `tiers`, tier 1 `economy` and tier 2 `standard` are built from what is available: `OPENAI_API_KEY`,",
    "`ANTHROPIC_API_KEY`, `GEMINI_API_KEY`, the models of a local Ollama, and always `builtin/extractive` last. With",
    "`tiers`, exactly those are used.",
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
