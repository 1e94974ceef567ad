/** The text that a model embeds. A passage alone often does not name its subject, so the title is added. */
export function embeddedText(title: string, text: string): string {
  return `${title}\n\n${text}`;
}
