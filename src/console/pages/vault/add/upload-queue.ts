import type { VaultDocument } from "../../../../http/api.ts";
import { type ApiProblem, asProblem } from "../../../api/problem.ts";
import { bodyOf } from "./body.ts";
import { titleOf, typeOf } from "./file-type.ts";
import { sendDocument } from "./send.ts";

/** `indexing`: the file has been sent, and the server is processing it. */
export type UploadState =
  | { readonly kind: "waiting" | "reading" | "indexing" | "cancelled" }
  | { readonly kind: "sending"; readonly share: number }
  | { readonly kind: "done"; readonly document: VaultDocument }
  | { readonly kind: "failed"; readonly problem: ApiProblem };

export interface Upload {
  readonly id: number;
  readonly file: File;
  readonly scope: string;
  readonly state: UploadState;
}

const AT_ONCE = 2;

/** Uploads to the vault, two at a time. They continue while the reader visits other pages. */
export class UploadQueue {
  readonly #listeners = new Set<() => void>();
  readonly #running = new Map<number, AbortController>();
  #uploads: readonly Upload[] = [];
  #last = 0;

  get uploads(): readonly Upload[] {
    return this.#uploads;
  }

  /** @returns a function that stops the notifications */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  add(files: readonly File[], scope: string): void {
    const added = files.map((file): Upload => {
      this.#last += 1;
      return { id: this.#last, file, scope, state: { kind: "waiting" } };
    });
    this.#show([...this.#uploads, ...added]);
    this.#startNext();
  }

  cancel(id: number): void {
    this.#become(id, { kind: "cancelled" });
    this.#running.get(id)?.abort(new Error("cancelled"));
  }

  again(id: number): void {
    this.#become(id, { kind: "waiting" });
    this.#startNext();
  }

  /** Removes finished uploads from the list. */
  clear(): void {
    this.#show(this.#uploads.filter(({ state }) => isOpen(state)));
  }

  /** Aborts running uploads and forgets all of them. */
  end(): void {
    for (const { id, state } of this.#uploads) if (isOpen(state)) this.cancel(id);
    this.#show([]);
  }

  #startNext(): void {
    while (this.#running.size < AT_ONCE) {
      const next = this.#uploads.find(({ id, state }) => state.kind === "waiting" && !this.#running.has(id));
      if (!next) return;
      void this.#run(next);
    }
  }

  async #run({ id, file, scope }: Upload): Promise<void> {
    const abort = new AbortController();
    const { signal } = abort;
    this.#running.set(id, abort);
    // Ignores late reports of a cancelled upload.
    const become = (state: UploadState) => {
      if (!signal.aborted) this.#become(id, state);
    };
    try {
      become({ kind: "reading" });
      const type = typeOf(file.name) ?? file.type;
      const body = await bodyOf({ title: titleOf(file.name), scope, content_type: type }, file, signal);
      const sent = (share: number) => become(share < 1 ? { kind: "sending", share } : { kind: "indexing" });
      sent(0);
      become({ kind: "done", document: await sendDocument(body, { signal, sent }) });
    } catch (error) {
      become({ kind: "failed", problem: asProblem(error) });
    } finally {
      this.#running.delete(id);
      this.#startNext();
    }
  }

  #become(id: number, state: UploadState): void {
    this.#show(this.#uploads.map((upload) => (upload.id === id ? { ...upload, state } : upload)));
  }

  #show(uploads: readonly Upload[]): void {
    this.#uploads = uploads;
    for (const listener of this.#listeners) listener();
  }
}

export function isOpen({ kind }: UploadState): boolean {
  return kind === "waiting" || kind === "reading" || kind === "sending" || kind === "indexing";
}
