import type { Message } from "../message.ts";
import type { RunState } from "../run.ts";
import type { NamedModel } from "./model.ts";
import { toProviderRequest } from "./prompt.ts";
import type { StreamPart } from "./response.ts";

export interface ModelRequest {
  readonly candidate: NamedModel;
  readonly step: number;
  /** Counts from 1 within the step. */
  readonly attempt: number;
  readonly messages: readonly Message[];
  /** Size of the request (`requestBytes`). Measured when first called. */
  readonly sentBytes: () => number;
  /** Size of its content, without the overhead of JSON and the dialect. */
  readonly contentBytes: () => number;
  /** Whether the text of the conversation has more bytes than this (`exceedsText`). */
  readonly exceedsText: (bytes: number) => boolean;
}

/** The methods of a stream reader that are used here. The libraries' own types differ between Bun and Node. */
interface PartReader {
  read(): Promise<{ readonly value?: StreamPart | undefined }>;
  cancel(reason: unknown): Promise<void>;
}

/** The connection to a provider for one answer. MUST be closed. */
export class Upstream {
  readonly #run: RunState;
  readonly #controller = new AbortController();
  readonly #abort = (): void => this.#stop(this.#run.signal.reason);
  #reader: PartReader | undefined;
  #wasAsked = false;

  constructor(run: RunState) {
    this.#run = run;
    run.signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Whether the prompt is known to have been sent. */
  get wasAsked(): boolean {
    return this.#wasAsked;
  }

  /** Whether the provider has begun to answer, and so has accepted the prompt. */
  get wasOpened(): boolean {
    return this.#reader !== undefined;
  }

  /**
   * Sends the prompt. Rejects with the provider's error, or as soon as the run is cancelled, even if the provider
   * does not react.
   */
  async open({ candidate, messages }: ModelRequest): Promise<void> {
    const { signal } = this.#controller;
    const { model } = candidate;
    this.#wasAsked = true;
    const opening = (async () => {
      if (model.specificationVersion === "v3") {
        const request = toProviderRequest(this.#run, messages, (base64) => base64);
        return model.doStream({ ...request, abortSignal: signal });
      }
      const request = toProviderRequest(this.#run, messages, (data) => ({ type: "data" as const, data }));
      return model.doStream({ ...request, abortSignal: signal });
    })();
    const stopped = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    // If the stream opens later, nobody is left to read it.
    opening.then(
      ({ stream }) => {
        if (signal.aborted) cancelQuietly(stream, signal.reason);
      },
      () => {},
    );
    const { stream }: { stream: ReadableStream<StreamPart> } = await Promise.race([opening, stopped]);
    this.#reader = stream.getReader();
  }

  /** The next part; undefined at the end of the stream or as soon as the run is cancelled. */
  async next(): Promise<StreamPart | undefined> {
    if (this.#controller.signal.aborted) return undefined;
    return (await this.#reader?.read())?.value;
  }

  /** Releases the provider, and stops it if its answer is not complete. */
  close(isComplete: boolean): void {
    this.#run.signal.removeEventListener("abort", this.#abort);
    if (isComplete) this.#cancelReader(undefined);
    else this.#stop(new DOMException("The answer is no longer needed.", "AbortError"));
  }

  /** Cancelling the reader ends a pending read immediately, even if the provider ignores the signal. */
  #stop(reason: unknown): void {
    this.#controller.abort(reason);
    this.#cancelReader(reason);
  }

  #cancelReader(reason: unknown): void {
    if (this.#reader) cancelQuietly(this.#reader, reason);
  }
}

/** Errors thrown by a provider while it is being stopped are ignored. */
function cancelQuietly(stream: { cancel(reason: unknown): Promise<void> }, reason: unknown): void {
  stream.cancel(reason).catch(() => {});
}
