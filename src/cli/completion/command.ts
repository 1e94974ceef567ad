import { Argument, type Command } from "commander";
import { plain } from "../options.ts";
import { createProgram } from "../program.ts";
import { bashScript } from "./bash.ts";
import { fishScript } from "./fish.ts";
import { type Verb, verbsOf } from "./verbs.ts";
import { zshScript } from "./zsh.ts";

const SCRIPTS: Readonly<Record<string, (verbs: readonly Verb[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** `completion`: what a shell needs to complete commands and options. */
export function completionCommand(): Command {
  return plain("completion", "print a script that completes commands and options in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .addHelpText(
      "after",
      `
  bash: source <(gatehouse completion bash)       in ~/.bashrc
  zsh:  source <(gatehouse completion zsh)        in ~/.zshrc, after compinit
  fish: gatehouse completion fish | source        in ~/.config/fish/config.fish`,
    )
    .action(async (shell: string) => {
      const verbs = verbsOf(await createProgram([]));
      process.stdout.write(SCRIPTS[shell]?.(verbs) ?? "");
    });
}
