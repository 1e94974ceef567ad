import type { Message } from "./message.ts";
import type { NamedModel } from "./model.ts";
import { toProviderPrompt, toProviderTools } from "./prompt.ts";
import type { StreamPart } from "./received.ts";
import type { Run } from "./run.ts";

/** One question to one model. */
export interface ModelRequest {
  readonly candidate: NamedModel;
  readonly step: number;
  /** From 1 within the step. */
  readonly attempt: number;
  readonly messages: readonly Message[];
  /** Bytes of what is sent (`requestBytes`). Measured when it is first asked for. */
  readonly sentBytes: () => number;
  /** Those of them that are not JSON's or the dialect's. */
  readonly contentBytes: () => number;
}

/** The part of a stream's reader that is used here; the libraries' own types differ between Bun and Node. */
interface PartReader {
  read(): Promise<{ readonly value?: StreamPart | undefined }>;
  cancel(reason: unknown): Promise<void>;
}

/** The connection to a provider for one answer. MUST be closed. */
export class Upstream {
  readonly #run: Run;
  readonly #controller = new AbortController();
  readonly #abort = (): void => this.#stop(this.#run.signal.reason);
  #reader: PartReader | undefined;
  #wasAsked = false;

  constructor(run: Run) {
    this.#run = run;
    run.signal.addEventListener("abort", this.#abort, { once: true });
  }

  /** Whether the prompt has been sent, as far as can be known. */
  get wasAsked(): boolean {
    return this.#wasAsked;
  }

  /** Whether the provider has begun to answer: it has taken the prompt. */
  get wasOpened(): boolean {
    return this.#reader !== undefined;
  }

  /** Sends the prompt. Rejects with the provider's error, or when the run is cancelled, whatever the provider does. */
  async open({ candidate, messages }: ModelRequest): Promise<void> {
    const { instructions, toolbox } = this.#run.settings;
    const tools = toProviderTools(this.#run.offeredTools(), toolbox);
    const { signal } = this.#controller;
    const options = {
      prompt: toProviderPrompt(instructions, messages, toolbox),
      ...(tools.length === 0 ? {} : { tools }),
      abortSignal: signal,
    };
    this.#wasAsked = true;
    const opening = (async () => candidate.model.doStream(options))();
    const stopped = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
    // A stream that opens after all has nobody left to read it.
    opening.then(
      ({ stream }) => {
        if (signal.aborted) cancelQuietly(stream, signal.reason);
      },
      () => {},
    );
    const { stream }: { stream: ReadableStream<StreamPart> } = await Promise.race([opening, stopped]);
    this.#reader = stream.getReader();
  }

  /** The next part; undefined at the end of the stream and as soon as the run is cancelled. */
  async next(): Promise<StreamPart | undefined> {
    if (this.#controller.signal.aborted) return undefined;
    return (await this.#reader?.read())?.value;
  }

  /** Lets go of the provider, which is told to stop when its answer is not complete. */
  close(isComplete: boolean): void {
    this.#run.signal.removeEventListener("abort", this.#abort);
    if (isComplete) this.#cancelReader(undefined);
    else this.#stop(new DOMException("The answer is no longer wanted.", "AbortError"));
  }

  /** A cancelled reader ends its pending read at once, also where the provider ignores the signal. */
  #stop(reason: unknown): void {
    this.#controller.abort(reason);
    this.#cancelReader(reason);
  }

  #cancelReader(reason: unknown): void {
    if (this.#reader) cancelQuietly(this.#reader, reason);
  }
}

/** What a provider throws while it is being stopped changes nothing. */
function cancelQuietly(stream: { cancel(reason: unknown): Promise<void> }, reason: unknown): void {
  stream.cancel(reason).catch(() => {});
}
