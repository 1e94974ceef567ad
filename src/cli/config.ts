import type { Command } from "commander";
import { OperatorError } from "../base/errors.ts";
import { checkConfig } from "../config/check.ts";
import { configReference, settingsReference } from "../config/reference.ts";
import { configTable, showConfig } from "../config/show.ts";
import { type ConfigOptions, command, plain, resolveConfig, sources } from "./options.ts";
import { print, printJson } from "./output.ts";

interface ConfigVerbOptions extends ConfigOptions {
  readonly json?: boolean;
}

export function configCommand(): Command {
  return plain("config", "show and check the configuration")
    .addCommand(
      command("show", "show every setting, its value (secrets redacted) and where it comes from")
        .option("--listen <host:port>", "as for serve")
        .option("--json", "print JSON")
        .action(async (options: ConfigVerbOptions) => {
          const { values } = await resolveConfig(options);
          if (options.json) printJson(showConfig(values));
          else print(configTable(values));
        }),
    )
    .addCommand(
      command("check", "check the configuration and report all mistakes")
        .option("--listen <host:port>", "as for serve")
        .option("--json", "print JSON")
        .action((options: ConfigVerbOptions) => {
          const result = checkConfig(sources(options));
          if (options.json) printJson({ ok: result.ok, problems: result.problems });
          else if (result.ok) for (const message of result.messages) print(message);
          if (!result.ok) throw new OperatorError(result.messages.join("\n  "), undefined, 2);
        }),
    )
    .addCommand(
      command("reference", "print the reference of all settings as Markdown")
        .option("--json", "print JSON")
        .action(({ json }: ConfigVerbOptions) => {
          if (json) printJson(settingsReference());
          else print(configReference());
        }),
    );
}
