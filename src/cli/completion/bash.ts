import { type Verb, valueFlags } from "./verbs.ts";

/** A script for bash 3.2 or later. Its words contain no character that the shell would interpret. */
export function bashScript(verbs: readonly Verb[]): string {
  return `# Completions of gatehouse for bash. Load them with: source <(gatehouse completion bash)
_gatehouse() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} path= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${COMP_WORDS[i-1]}" in ${valueFlags(verbs).join(" | ")}) continue ;; esac
    case "$path \${COMP_WORDS[i]}" in
${verbs
  .flatMap(({ words, next }) =>
    next.map(({ word }) => `      "${[...words, word].join(" ")}"`.replace('"', '" ')),
  )
  .map((pattern) => `${pattern}) path="$path \${COMP_WORDS[i]}" ;;`)
  .join("\n")}
    esac
  done
  COMPREPLY=()
  case "$path $before" in
${verbs.flatMap(valuesOf).join("\n")}
  esac
  case "$path" in
${verbs.map(wordsOf).join("\n")}
  esac
}
complete -o default -F _gatehouse gatehouse
`;
}

/** The values of an option whose values are known. After any other that takes one, the shell completes files. */
function valuesOf({ words, options }: Verb): string[] {
  return options
    .filter(({ takesValue }) => takesValue)
    .map(({ flags, choices }) => {
      const patterns = flags.map((flag) => `"${pathOf(words)} ${flag}"`).join(" | ");
      const reply =
        choices.length === 0 ? "" : ` COMPREPLY=($(compgen -W "${choices.join(" ")}" -- "$word"));`;
      return `    ${patterns})${reply} return ;;`;
    });
}

function wordsOf({ words, options, next, takesFiles }: Verb): string {
  const flags = options.flatMap((option) => option.flags).join(" ");
  const names = next.map(({ word }) => word).join(" ");
  const plain = takesFiles || names === "" ? "return" : `COMPREPLY=($(compgen -W "${names}" -- "$word"))`;
  return `    "${pathOf(words)}")
      if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "${flags}" -- "$word"))
      else ${plain}
      fi ;;`;
}

function pathOf(words: readonly string[]): string {
  return words.map((word) => ` ${word}`).join("");
}
