/** What a model turns into a vector: a passage alone often does not say what it is about. */
export function embeddedText(title: string, text: string): string {
  return `${title}\n\n${text}`;
}
