import { queueFull } from "../reading/workspace-round-robin.ts";
import type { PrepareRequest } from "./messages.ts";

/** Characters of all documents that are being written, from their call to its answer. */
const MOST = 128 * 1024 * 1024;
/** And of one workspace's: others always find room. A workspace's only document is taken however long it is. */
const MOST_OF_A_WORKSPACE = 32 * 1024 * 1024;

/** Bounds the memory of documents that wait to be read, are read, or are written. */
export class CharactersUnderWay {
  readonly #byWorkspace = new Map<number, number>();
  #total = 0;

  /** @throws Problem 429 `queue_full` when the documents under way are too much already */
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
