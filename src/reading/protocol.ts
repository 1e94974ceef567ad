import type { JobFailure } from "./job-errors.ts";

/** `isOverLimit`: reading took more memory than it may. */
export type ReadingFailure = JobFailure & { readonly isOverLimit: boolean };

/** `isLast`: the process that answers ends now. */
export type ReadingAnswer<Result> = { readonly isLast: boolean } & (
  | { readonly result: Result }
  | { readonly failure: ReadingFailure }
);

/** What a reading process is asked and answers, as frames (`frames.ts`). This is the side of the server. */
export interface ReadingProtocol<Request, Result> {
  /** Two frames, in pieces that are each made when they are asked for: what is known of the request, and its text or bytes. */
  encodeRequest(request: Request): Iterable<Uint8Array>;
  openAnswer(): {
    /** The whole answer with its last frame, else undefined. @throws BrokenFrame */
    push(body: Uint8Array): ReadingAnswer<Result> | undefined;
  };
}

/** The same, from the side of the process. */
export interface ReadingService<Request, Result> {
  /** Loads all that reading needs: afterwards no file can be opened. */
  load(): Promise<void>;
  /** Reads in a thread of its own, so that the process can notice that memory runs out. */
  read(request: Request): Promise<Result | ReadingFailure>;
  /** @throws BrokenFrame */
  decodeRequest(head: Uint8Array, body: Uint8Array): Request;
  /** The bodies of the answer's frames, each made when it is asked for. */
  encodeAnswer(answer: ReadingAnswer<Result>): Iterable<Uint8Array>;
}
