/** The contract's limit (section 6). */
export const NAME_LENGTH = 24;
const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
/** Names of built-in connectors, and the prefix of agents over MCP. */
const RESERVED: readonly string[] = ["agents", "time", "vault"];

/** What is wrong with a connector's name; undefined if it is valid. */
export function nameError(name: string): string | undefined {
  if (name === "") return "is required";
  if (name.length > NAME_LENGTH) return `is longer than ${NAME_LENGTH} characters`;
  if (!NAME.test(name))
    return "needs lower-case letters, digits and single underscores, starting with a letter";
  return undefined;
}

/**
 * Derives a free connector name from a package name, an address or another client's name, adding a number if needed.
 */
export function fitName(title: string, taken: ReadonlySet<string>): string {
  const last =
    title
      .split("/")
      .filter((part) => part.trim() !== "")
      .at(-1) ?? "";
  const fitted = snake(last).replace(/^(?:mcp_server_|server_|mcp_)(?=[a-z])/, "") || "connector";
  const free = (name: string) => !taken.has(name) && !RESERVED.includes(name);
  const first = cut(fitted, NAME_LENGTH);
  if (free(first)) return first;
  for (let count = 2; ; count += 1) {
    const name = `${cut(fitted, NAME_LENGTH - 1 - String(count).length)}_${count}`;
    if (free(name)) return name;
  }
}

function snake(text: string): string {
  return text
    .slice(0, 200)
    .normalize("NFKD")
    .replaceAll(/\p{M}/gu, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replace(/^[0-9_]+/, "")
    .replace(/_+$/, "");
}

function cut(text: string, length: number): string {
  return text.slice(0, length).replace(/_+$/, "");
}
