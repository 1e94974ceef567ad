import type { RunPolicy } from "../hooks.ts";
import { checkToolName, type Tool } from "./tool.ts";

/** OpenAI's limit, the lowest among the large providers. */
const PROVIDER_NAME_LENGTH = 64;

/** The tools of a run, with conversion between their own names and those for providers. */
export interface Toolbox {
  /** The tools that the policy currently allows. */
  offered(): readonly Tool[];
  isAllowed(name: string): boolean;
  /** Finds a tool by its own name. */
  find(name: string): Tool | undefined;
  /** Also accepts names that are not tools of this run, since an earlier conversation may contain some. */
  toProvider(name: string): string;
  /** The name of the tool that the model called; the given name if no tool has it. */
  fromProvider(name: string): string;
}

/**
 * Anthropic and OpenAI reject dots in names, so `vault.search` is offered as `vault__search`. All names are unique:
 * valid names stay as they are, and duplicates among the changed names are numbered.
 * @throws TypeError for an invalid or duplicate name
 */
export function createToolbox(tools: readonly Tool[], policy: RunPolicy = {}): Toolbox {
  const byName = new Map<string, Tool>();
  for (const tool of tools) {
    checkToolName(tool.name);
    if (byName.has(tool.name)) throw new TypeError(`tools: two tools are named ${tool.name}`);
    byName.set(tool.name, tool);
  }
  const outward = new Map<string, string>();
  const inward = new Map<string, string>();
  const claim = (own: string, shown: string): void => {
    outward.set(own, shown);
    inward.set(shown, own);
  };
  for (const name of byName.keys()) if (providerName(name) === name) claim(name, name);
  for (const name of byName.keys()) {
    if (outward.has(name)) continue;
    let shown = providerName(name);
    for (let number = 2; inward.has(shown); number++) {
      const suffix = `_${number}`;
      shown = providerName(name).slice(0, PROVIDER_NAME_LENGTH - suffix.length) + suffix;
    }
    claim(name, shown);
  }
  const isAllowed = (name: string): boolean => policy.allowTool?.(name) ?? true;
  return {
    offered: () => tools.filter(({ name }) => isAllowed(name)),
    isAllowed,
    find: (name) => byName.get(name),
    toProvider: (name) => outward.get(name) ?? providerName(name),
    fromProvider: (shown) => inward.get(shown) ?? shown,
  };
}

function providerName(name: string): string {
  const shown = name.replaceAll(".", "__").replaceAll(/[^a-zA-Z0-9_-]/g, "_");
  return shown.slice(0, PROVIDER_NAME_LENGTH) || "_";
}
