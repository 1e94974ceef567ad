import { takeWholeTurn } from "../base/inflow.ts";
import { type Embedder, EmbeddingFailed, type EmbedOptions } from "../models/embed/embedder.ts";
import type { Sql } from "../store/db.ts";
import type { VaultParts } from "./parts.ts";
import { vectorOfEqual } from "./rows/vec0.ts";
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
  readonly db: Pick<Sql, "get">;
  readonly spaces: Pick<VaultParts["spaces"], "written">;
}

export interface PassageLocation {
  readonly workspaceId: number;
  readonly scope: string;
}

/**
 * Returns the model's vectors, in order; null for a text that the model refuses however it is sent. Equal passages of
 * a scope are embedded once, and stored vectors are reused. Vectors of other scopes are never reused, or the response
 * time would reveal whether a guessed text exists there.
 * @throws EmbeddingFailed
 */
export async function vectorsOf(
  { db, spaces }: EmbeddingParts,
  embedder: Embedder,
  place: PassageLocation,
  wanted: readonly PassageToEmbed[],
  signal: AbortSignal,
): Promise<readonly (Float32Array | null)[]> {
  const space = spaces.written.find(({ name }) => name === embedder.space);
  const byHash = new Map<string, Float32Array | null>();
  const asked = new Map<string, string>();
  for (const [index, { hash, title, text }] of wanted.entries()) {
    const name = Buffer.from(hash).toString("base64");
    if (byHash.has(name) || asked.has(name)) continue;
    const known = space && space.dimensions > 0 && (await vectorOfEqual(db, space, place, hash));
    if (known) byHash.set(name, known);
    else asked.set(name, embeddedText(title, text));
    if (index % LOOKS_AT_ONCE === LOOKS_AT_ONCE - 1) {
      const turn = takeWholeTurn(place.workspaceId);
      if (turn) await turn;
    }
  }
  const { workspaceId } = place;
  const made = await ask(embedder, [...asked.values()], { workspaceId, signal });
  for (const [index, name] of [...asked.keys()].entries()) byHash.set(name, made[index] ?? null);
  return wanted.map(({ hash }) => byHash.get(Buffer.from(hash).toString("base64")) ?? null);
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
