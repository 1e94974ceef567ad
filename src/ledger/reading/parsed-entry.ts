/** Fields of an entry's bytes. The types are those that this program writes; they are not checked. */
export interface ParsedEntry {
  readonly ts?: string;
  readonly phase?: string;
  readonly ref?: number;
  readonly action?: string;
  readonly outcome?: string;
  readonly code?: string;
  readonly request_id?: string;
  readonly actor?: string;
  readonly agent?: string;
  readonly tier?: number;
  readonly model?: string;
  readonly task?: string;
  readonly tool?: string;
  readonly input_hash?: string;
  readonly output_hash?: string;
  readonly credits?: number;
  readonly oversight?: { readonly target_seq?: number };
  readonly detail?: { readonly [name: string]: unknown };
}

/**
 * Without fields if the bytes are not a JSON object: an early version may have signed what another program had
 * stored.
 */
export function parsedEntry(bytes: string): ParsedEntry {
  try {
    const entry: unknown = JSON.parse(bytes);
    return typeof entry === "object" && entry !== null ? entry : {};
  } catch {
    return {};
  }
}
