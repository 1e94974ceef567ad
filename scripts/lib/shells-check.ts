import { provide } from "./apt.ts";

const SHELLS = ["bash", "zsh", "fish"] as const;

/** Ensures that the shells whose completions are tested are installed: see `provide`. */
export function prepareShells(say: (text: string) => void, inCi: boolean): Promise<string | undefined> {
  return provide(SHELLS, whatIsMissing, say, inCi);
}

function whatIsMissing(): string | undefined {
  const missing = SHELLS.filter((shell) => Bun.which(shell) === null);
  return missing.length === 0 ? undefined : `there is no ${missing.join(" and no ")} on PATH`;
}
