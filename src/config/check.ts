import { type ConfigSources, tryLoadConfig } from "./load.ts";
import { type ConfigProblem, problemLine } from "./problems.ts";
import { TABLE } from "./table.ts";

/** The result of `config check`. Contains no secrets. */
export interface CheckResult {
  readonly ok: boolean;
  /** One line per problem. If there is none, one line that says what was checked. */
  readonly messages: readonly string[];
  readonly problems: readonly ConfigProblem[];
}

/** Checks a configuration without starting anything. */
export function checkConfig(sources: ConfigSources): CheckResult {
  const result = tryLoadConfig(sources);
  if (!result.ok) return { ok: false, messages: result.problems.map(problemLine), problems: result.problems };
  const { values, config } = result.loaded;
  const file = values.find(({ key }) => key === TABLE.config.key)?.value;
  const source = file === undefined ? "There is no configuration file. The defaults are" : `${file} is`;
  const counts = `${count(config.providers.size, "provider")}, ${count(config.tiers.size, "tier")}`;
  return { ok: true, messages: [`${source} valid: ${counts}.`], problems: [] };
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
