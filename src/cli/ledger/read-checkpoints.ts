import { createReadStream } from "node:fs";
import { parseCheckpoints, type SignedCheckpoint } from "../../ledger/proof/checkpoint.ts";
import { NoteError, SIGNATURE_START } from "../../ledger/proof/note.ts";

/** What a file of checkpoints contains. */
export interface StoredCheckpoints {
  readonly found: readonly SignedCheckpoint[];
  /** Pieces that are not checkpoints. If a process died while writing, the file contains an incomplete one. */
  readonly broken: number;
  /** Why the first of them is not a checkpoint. */
  readonly problem: string | undefined;
}

/** The longest checkpoint with its signatures, in characters. */
const LONGEST = 64 * 1024;

/**
 * Reads a file of checkpoints piece by piece. Such a file grows for as long as a server runs, so only its checkpoints are
 * kept in memory, never its text.
 * @throws Error if the file cannot be read
 */
export async function readCheckpointFile(path: string): Promise<StoredCheckpoints> {
  const pieces = new Pieces();
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of createReadStream(path)) {
    const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    // An unterminated line cannot belong to a checkpoint, so it is not collected.
    if (rest.length > LONGEST) rest = rest.slice(0, LONGEST + 1);
    for (const line of lines) pieces.add(line);
  }
  pieces.add(rest + decoder.decode());
  return pieces.end();
}

/** Takes lines, and parses what lies between the beginnings of two checkpoints. */
class Pieces {
  readonly #found: SignedCheckpoint[] = [];
  #broken = 0;
  #problem: string | undefined;
  #lines: string[] = [];
  #length = 0;

  add(text: string): void {
    const line = text.endsWith("\r") ? text.slice(0, -1) : text;
    const last = this.#lines.at(-1);
    const isSignature = line.startsWith(SIGNATURE_START);
    // There is also an empty line between a checkpoint and its signatures.
    if (line !== "" && !isSignature && (last === "" || last?.startsWith(SIGNATURE_START))) this.#parse();
    if (line === "" && (last === "" || this.#length === 0)) return;
    this.#length += line.length;
    if (this.#length <= LONGEST || line === "") this.#lines.push(line);
  }

  end(): StoredCheckpoints {
    this.#parse();
    return { found: this.#found, broken: this.#broken, problem: this.#problem };
  }

  #parse(): void {
    const piece = this.#lines.join("\n").replace(/\n+$/, "");
    const isTooLong = this.#length > LONGEST;
    this.#lines = [];
    this.#length = 0;
    if (piece.trim() === "" && !isTooLong) return;
    try {
      if (isTooLong) throw new NoteError("it is too long for a checkpoint");
      this.#found.push(...parseCheckpoints(`${piece}\n`));
    } catch (error) {
      if (!(error instanceof NoteError)) throw error;
      this.#problem ??= error.message;
      this.#broken += 1;
    }
  }
}
