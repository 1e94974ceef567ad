import { homedir } from "node:os";
import { basename, dirname, resolve, sep } from "node:path";
import { lookUp } from "../../config/environment.ts";
import { readTextFile } from "../../config/read-file.ts";
import type { Variables } from "./values.ts";

/** Why an entry of a client's configuration cannot be used. */
export class EntryError extends Error {
  override readonly name = "EntryError";
}

/** Folders in which editors keep a workspace's configuration. */
const EDITORS = [".vscode", ".cursor"];

/**
 * Fills in the placeholders of MCP clients: `${env:NAME}` (VS Code, Cursor), `${NAME}` and `${NAME:-default}` (Claude
 * Code), `${userHome}`, `${workspaceFolder}`, `${pathSeparator}`. Values are not expanded again.
 */
export function placeholders(file: string, env: Variables): (text: string) => string {
  const folder = dirname(resolve(file));
  const workspace = EDITORS.includes(basename(folder)) ? dirname(folder) : undefined;
  return (text) => text.replace(/\$\{([^}]*)\}/g, (_, inner: string) => filledIn(inner, workspace, env));
}

function filledIn(inner: string, workspace: string | undefined, env: Variables): string {
  const [, variable, fallback] = /^(?:env:)?([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inner) ?? [];
  switch (inner) {
    case "userHome":
      return homedir();
    case "pathSeparator":
    case "/":
      return sep;
    case "workspaceFolder":
      if (workspace !== undefined) return workspace;
      break;
    case "workspaceFolderBasename":
      if (workspace !== undefined) return basename(workspace);
      break;
    default:
      if (variable !== undefined) return fromEnvironment(variable, fallback, env);
  }
  const [, input] = /^input:([\w.-]{1,64})$/.exec(inner) ?? [];
  if (input !== undefined) {
    throw new EntryError(
      `it needs \${input:${input}}, which the client asks its user for: replace it with \${env:NAME} and set NAME`,
    );
  }
  // The text may be a secret that happens to begin with these characters.
  const isPlain = /^[A-Za-z]{1,64}(:[\w.-]{1,64})?$/.test(inner);
  throw new EntryError(`it has \${${isPlain ? inner : "…"}}, which is not supported here`);
}

function fromEnvironment(name: string, fallback: string | undefined, env: Variables): string {
  const found = lookUp(env, readTextFile, name);
  if (found && "value" in found) return found.value;
  if (found) throw new EntryError(`it needs the environment variable ${name}, but ${found.failure}`);
  if (fallback !== undefined) return fallback;
  throw new EntryError(`it needs the environment variable ${name}, which is not set`);
}
