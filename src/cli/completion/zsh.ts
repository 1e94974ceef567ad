import { type Verb, type VerbOption, valueFlags } from "./verbs.ts";

/** A script for zsh, as a file \`_gatehouse\` of \`fpath\` or to be sourced. */
export function zshScript(verbs: readonly Verb[]): string {
  return `#compdef gatehouse
# Completions of gatehouse for zsh. Load them with: source <(gatehouse completion zsh)
_gatehouse() {
  local verb= i
  for ((i = 2; i < CURRENT; i++)); do
    case "\${words[i-1]}" in ${valueFlags(verbs).join(" | ")}) continue ;; esac
    case "$verb \${words[i]}" in
${verbs
  .flatMap(({ words, next }) => next.map(({ word }) => pathOf([...words, word])))
  .map((path) => `      ${quoted(path)}) verb="$verb \${words[i]}" ;;`)
  .join("\n")}
    esac
  done
  local -a verbs options
  case "$verb \${words[CURRENT-1]}" in
${verbs.flatMap(valuesOf).join("\n")}
  esac
  case "$verb" in
${verbs.map(wordsOf).join("\n")}
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _gatehouse "$@"; else compdef _gatehouse gatehouse; fi
`;
}

function valuesOf({ words, options }: Verb): string[] {
  return options
    .filter(({ takesValue }) => takesValue)
    .map(({ flags, choices }) => {
      const patterns = flags.map((flag) => quoted(`${pathOf(words)} ${flag}`)).join(" | ");
      const reply = choices.length === 0 ? "_files" : `compadd -- ${choices.map(quoted).join(" ")}`;
      return `    ${patterns}) ${reply}; return ;;`;
    });
}

function wordsOf({ words, options, next, takesFiles }: Verb): string {
  const verbs = next.map(({ word, description }) => described(word, description));
  const flags = options.flatMap((option) => option.flags.map((flag) => described(flag, textOf(option))));
  const plain = takesFiles || verbs.length === 0 ? "_files" : "_describe command verbs";
  return `    ${quoted(pathOf(words))})
      verbs=(${verbs.join(" ")})
      options=(${flags.join(" ")})
      if [[ $PREFIX == -* ]]; then _describe option options
      else ${plain}
      fi ;;`;
}

function textOf({ description }: VerbOption): string {
  return description;
}

/** A colon ends the word that is described. */
function described(word: string, description: string): string {
  return quoted(`${word.replaceAll(":", "\\:")}:${description}`);
}

function pathOf(words: readonly string[]): string {
  return words.map((word) => ` ${word}`).join("");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
