import type { Command, Option } from "commander";

/** A command of the command line, for completions and manual pages. */
export interface Verb {
  /** The words that lead to it, such as `["token", "create"]`. The program itself has none. */
  readonly words: readonly string[];
  readonly description: string;
  readonly options: readonly VerbOption[];
  /** The words that may follow it. */
  readonly next: readonly { readonly word: string; readonly description: string }[];
  /** Whether files may follow it. */
  readonly takesFiles: boolean;
}

export interface VerbOption {
  /** As they are typed, such as `-h` and `--help`. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
  /** The values that it takes, if they are known. */
  readonly choices: readonly string[];
}

/** The program and all its commands, each before those below it. */
export function verbsOf(program: Command, words: readonly string[] = []): Verb[] {
  const help = program.createHelp();
  const below = help.visibleCommands(program).filter((command) => command.name() !== "help");
  const own: Verb = {
    words,
    description: program.description(),
    options: help.visibleOptions(program).map(optionOf),
    next: below.map((command) => ({ word: command.name(), description: command.description() })),
    takesFiles: program.registeredArguments.some((argument) => FILES.test(argument.name())),
  };
  return [own, ...below.flatMap((command) => verbsOf(command, [...words, command.name()]))];
}

/** All options that take a value. What follows one is never a command. */
export function valueFlags(verbs: readonly Verb[]): readonly string[] {
  const flags = verbs.flatMap(({ options }) => options.filter(({ takesValue }) => takesValue));
  return [...new Set(flags.flatMap((option) => option.flags))].sort();
}

const FILES = /^(file|path|paths)$/;

function optionOf({ short, long, description, required, optional, argChoices }: Option): VerbOption {
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    description,
    takesValue: required || optional,
    choices: argChoices ?? [],
  };
}
