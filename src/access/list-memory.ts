/** Bytes of an array without its texts, and of a text without its characters. */
const [LIST, TEXT] = [64, 64];

/**
 * The bytes of memory that a list of patterns, scopes or paths takes, at most. All lists of a node's tenants, with what
 * is derived from them, take no more than:
 *
 * | kept | file | MiB |
 * | --- | --- | --- |
 * | parsed texts of three columns, each with 1 Mi characters of up to 13 bytes | `kept-json.ts` | 39 |
 * | agents as last read | `agent-cache.ts` | 32 |
 * | callers, by token and by session | `caller-cache.ts` | 2 × 16 |
 * | compiled lists and their results by name | `base/glob.ts` | 24 |
 * | decisions of four rules about whole lists of tools | `connectors/tool-rule.ts` | 4 × 4 |
 * | sum | | 143 |
 *
 * Lists made to take much memory took at most 60 % of each, as measured. Lists that calls, tasks and
 * streams in progress hold are not included.
 */
export function bytesOfList(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + TEXT + text.length, LIST);
}
