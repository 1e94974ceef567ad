import { type Verb, valueFlags } from "./verbs.ts";

/** A script for fish 3 or later. */
export function fishScript(verbs: readonly Verb[]): string {
  const paths = verbs.flatMap(({ words, next }) => next.map(({ word }) => [...words, word].join(" ")));
  return `# Completions of gatehouse for fish. Load them with: gatehouse completion fish | source
function __gatehouse_at
    set -l path ''
    set -l before ''
    for word in (commandline -opc)[2..-1]
        set -l option $before
        set before $word
        contains -- "$option" ${valueFlags(verbs).map(quoted).join(" ")}; and continue
        set -l longer (string trim -- "$path $word")
        contains -- $longer ${paths.map(quoted).join(" ")}; and set path $longer
    end
    test "$path" = "$argv[1]"
end
complete -c gatehouse -f
${verbs.flatMap(linesOf).join("\n")}
`;
}

function linesOf({ words, options, next, takesFiles }: Verb): string[] {
  const condition = `-n ${quoted(`__gatehouse_at ${quoted(words.join(" "))}`)}`;
  const start = `complete -c gatehouse ${condition}`;
  return [
    ...next.map(({ word, description }) => `${start} -a ${quoted(word)} -d ${quoted(description)}`),
    ...(takesFiles ? [`${start} -F`] : []),
    ...options.map(({ flags, description, takesValue, choices }) => {
      const names = flags.map((flag) =>
        flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
      );
      const value = !takesValue ? "" : choices.length > 0 ? ` -x -a ${quoted(choices.join(" "))}` : " -r -F";
      return `${start} ${names.join(" ")}${value} -d ${quoted(description)}`;
    }),
  ];
}

/** In single quotes, fish interprets only the backslash and the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
