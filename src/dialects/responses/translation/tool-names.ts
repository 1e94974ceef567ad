import { field } from "../../json.ts";

/** Between a namespace and a tool in it. */
const SEPARATOR = "__";

/** The flat name for models of a tool in a namespace. Models do not know namespaces. */
export function flatName(namespace: string, name: string): string {
  return `${namespace}${SEPARATOR}${name}`;
}

/** A tool as the client knows it. */
export interface ClientTool {
  readonly name: string;
  readonly namespace?: string;
}

/** The tools of a request that are in a namespace, by the names that models use. */
export function namespacedTools(request: unknown): ReadonlyMap<string, ClientTool> {
  const names = new Map<string, ClientTool>();
  const tools = field(request, "tools");
  for (const tool of Array.isArray(tools) ? tools : []) {
    const [namespace, inner] = [field(tool, "name"), field(tool, "tools")];
    if (field(tool, "type") !== "namespace" || typeof namespace !== "string") continue;
    for (const each of Array.isArray(inner) ? inner : []) {
      const name = field(each, "name");
      if (typeof name === "string") names.set(flatName(namespace, name), { name, namespace });
    }
  }
  return names;
}
