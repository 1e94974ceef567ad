import { timeNow } from "./time.ts";
import type { BuiltinTool } from "./tool.ts";
import { type VaultToolParts, vaultTools } from "./vault.ts";

/** The tools that every workspace has. */
export function builtinTools(parts: VaultToolParts): readonly BuiltinTool[] {
  return [...vaultTools(parts), timeNow(parts.clock)];
}
