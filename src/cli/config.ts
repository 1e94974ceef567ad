import type { Command } from "commander";
import { OperatorError } from "../base/errors.ts";
import { checkConfig } from "../config/check.ts";
import { configReference } from "../config/reference.ts";
import { configTable, showConfig } from "../config/show.ts";
import { type ConfigOptions, command, plain, resolveConfig, sources } from "./options.ts";
import { print, printJson } from "./output.ts";

interface Options extends ConfigOptions {
  readonly json?: boolean;
}

export function configCommand(): Command {
  return plain("config", "see and check the configuration")
    .addCommand(
      command("show", "every setting, its value (secrets redacted), and where it comes from")
        .option("--listen <host:port>", "as serve takes it")
        .option("--json", "print JSON")
        .action(async (options: Options) => {
          const { values } = await resolveConfig(options);
          if (options.json) printJson(showConfig(values));
          else print(configTable(values));
        }),
    )
    .addCommand(
      command("check", "say whether the configuration is right, and if not, all that is wrong")
        .option("--listen <host:port>", "as serve takes it")
        .option("--json", "print JSON")
        .action((options: Options) => {
          const result = checkConfig(sources(options));
          if (options.json) printJson({ ok: result.ok, problems: result.problems });
          else if (result.ok) for (const message of result.messages) print(message);
          if (!result.ok) throw new OperatorError(result.messages.join("\n  "), undefined, 2);
        }),
    )
    .addCommand(
      command("reference", "print the reference of every setting as Markdown").action(() =>
        print(configReference()),
      ),
    );
}
