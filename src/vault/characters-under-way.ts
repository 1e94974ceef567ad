import { queueFull } from "../reading/workspace-round-robin.ts";
import type { PrepareRequest } from "./messages.ts";

/** Maximum number of characters of all documents being written, from their call to its answer. */
const MOST = 128 * 1024 * 1024;
/** The most for one workspace, so others always have room. Its only document is accepted however long it is. */
const MOST_OF_A_WORKSPACE = 32 * 1024 * 1024;

/** Limits the memory of documents that wait to be read, are being read, or are being written. */
export class CharactersUnderWay {
  readonly #byWorkspace = new Map<number, number>();
  #total = 0;

  /** @throws Problem 429 `queue_full` if the documents in progress are too large already */
  async within<Result>(
    { workspaceId, content }: { readonly workspaceId: number; readonly content: PrepareRequest["content"] },
    work: () => Promise<Result>,
  ): Promise<Result> {
    const characters = content.kind === "text" ? content.text.length : content.data.length;
    const own = this.#byWorkspace.get(workspaceId) ?? 0;
    if (this.#total > 0 && this.#total + characters > MOST) throw queueFull();
    if (own > 0 && own + characters > MOST_OF_A_WORKSPACE) throw queueFull();
    this.#add(workspaceId, characters);
    try {
      return await work();
    } finally {
      this.#add(workspaceId, -characters);
    }
  }

  #add(workspaceId: number, characters: number): void {
    this.#total += characters;
    const own = (this.#byWorkspace.get(workspaceId) ?? 0) + characters;
    if (own === 0) this.#byWorkspace.delete(workspaceId);
    else this.#byWorkspace.set(workspaceId, own);
  }
}
