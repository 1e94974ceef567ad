import { Command } from "commander";
import type { LoadedConfig } from "../config/config.ts";
import { withDefaultModels } from "../config/defaults.ts";
import { type ConfigSources, loadConfig } from "../config/load.ts";
import { probeOllama } from "../config/ollama.ts";

/** Options that select the configuration. All commands have them. */
export interface ConfigOptions {
  readonly data?: string;
  readonly config?: string;
  readonly listen?: string;
}

/** A command with the common options. */
export function command(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option("--data <dir>", "data directory (default ./gatehouse-data, or GATEHOUSE_DATA)")
    .option("--config <file>", "configuration file (default gatehouse.yaml in the data directory)")
    .helpOption("-h, --help", "show help")
    .showHelpAfterError("(add --help for usage)")
    .exitOverride();
}

/** A command without configuration: a group of commands, or one that needs nothing of this node. */
export function plain(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .helpOption("-h, --help", "show help")
    .helpCommand(false)
    .showHelpAfterError("(add --help for usage)")
    .exitOverride();
}

export function sources(options: ConfigOptions): ConfigSources {
  return {
    flags: { data: options.data, config: options.config, listen: options.listen },
    env: process.env,
    cwd: process.cwd(),
  };
}

/** The configuration, with detected models if the file names no tiers. @throws OperatorError */
export async function resolveConfig(options: ConfigOptions): Promise<LoadedConfig> {
  const loaded = loadConfig(sources(options));
  if (!loaded.defaultTiers) return loaded;
  return withDefaultModels(loaded, { env: process.env, ollamaModels: await probeOllama({ fetch }) });
}

/** Collects the values of a repeatable option. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}
