import { takeWholeTurn } from "../base/inflow.ts";
import { type Embedder, EmbeddingFailed, type EmbedOptions } from "../models/embed/embedder.ts";
import type { Sql } from "../store/db.ts";
import type { VaultParts } from "./parts.ts";
import type { PassageLocation } from "./rows/vector-store.ts";
import { embeddedText } from "./terms/embedded-text.ts";

/** Lookups of equal passages before other calls get a turn: each blocks the event loop for about 30 µs. */
const LOOKS_AT_ONCE = 32;

/** The parts of a passage that determine its vector. */
export interface PassageToEmbed {
  readonly title: string;
  readonly text: string;
  /** Hash of title and text: equal passages have equal vectors. */
  readonly hash: Uint8Array;
}

export interface EmbeddingParts {
  readonly db: Pick<Sql, "all" | "get">;
  readonly spaces: Pick<VaultParts["spaces"], "written">;
  readonly vectors: Pick<VaultParts["vectors"], "ofEqual">;
}

/**
 * Returns the model's vectors, in order; null for a text that the model refuses however it is sent. Equal passages of
 * a scope are embedded once, and stored vectors are reused. Vectors of other scopes are never reused, or the response
 * time would reveal whether a guessed text exists there.
 * @throws EmbeddingFailed
 */
export async function vectorsOf(
  { db, spaces, vectors }: EmbeddingParts,
  embedder: Embedder,
  place: PassageLocation,
  wanted: readonly PassageToEmbed[],
  signal: AbortSignal,
): Promise<readonly (Float32Array | null)[]> {
  const space = spaces.written.find(({ name }) => name === embedder.space);
  const byName = new Map(wanted.map((passage) => [nameOf(passage), passage]));
  const byHash = new Map<string, Float32Array | null>();
  const asked = new Map<string, string>();
  const passages = [...byName];
  for (let from = 0; from < passages.length; from += LOOKS_AT_ONCE) {
    const slice = passages.slice(from, from + LOOKS_AT_ONCE);
    const hashes = slice.map(([, { hash }]) => hash);
    const known = space && space.dimensions > 0 ? await vectors.ofEqual(db, space, place, hashes) : [];
    for (const [index, [name, { title, text }]] of slice.entries()) {
      const vector = known[index];
      if (vector) byHash.set(name, vector);
      else asked.set(name, embeddedText(title, text));
    }
    const turn = slice.length === LOOKS_AT_ONCE && takeWholeTurn(place.workspaceId);
    if (turn) await turn;
  }
  const { workspaceId } = place;
  const made = await ask(embedder, [...asked.values()], { workspaceId, signal });
  for (const [index, name] of [...asked.keys()].entries()) byHash.set(name, made[index] ?? null);
  return wanted.map((passage) => byHash.get(nameOf(passage)) ?? null);
}

function nameOf({ hash }: PassageToEmbed): string {
  return Buffer.from(hash).toString("base64");
}

async function ask(
  embedder: Embedder,
  texts: readonly string[],
  options: EmbedOptions,
): Promise<readonly (Float32Array | null)[]> {
  if (texts.length === 0) return [];
  try {
    return await embedder.embed(texts, "document", options);
  } catch (error) {
    if (!(error instanceof EmbeddingFailed) || error.text === undefined) throw error;
    const refused = error.text;
    const before = await ask(embedder, texts.slice(0, refused), options);
    const after = await ask(embedder, texts.slice(refused + 1), options);
    return [...before, null, ...after];
  }
}
