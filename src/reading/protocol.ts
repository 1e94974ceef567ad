import Type from "typebox";
import type { JobFailure } from "./job-errors.ts";

/** `isOverLimit`: reading exceeded the memory limit. */
export type ReadingFailure = JobFailure & { readonly isOverLimit: boolean };

/** A failure, as an answer carries it. */
export const FAILURE = Type.Object(
  {
    failure: Type.Object(
      {
        message: Type.String(),
        field: Type.Union([Type.String(), Type.Null()]),
        isStore: Type.Boolean(),
        isOverLimit: Type.Boolean(),
      },
      { additionalProperties: false },
    ),
    isLast: Type.Boolean(),
  },
  { additionalProperties: false },
);

/** `isLast`: the answering process ends now. */
export type ReadingAnswer<Result> = { readonly isLast: boolean } & (
  | { readonly result: Result }
  | { readonly failure: ReadingFailure }
);

/** The requests and answers of a reading process, as frames (`frames.ts`). The server's side. */
export interface ReadingProtocol<Request, Result> {
  /** Two frames, in pieces created on demand: the request's metadata, and its text or bytes. */
  encodeRequest(request: Request): Iterable<Uint8Array>;
  openAnswer(): {
    /** Returns the whole answer at its last frame, otherwise undefined. @throws BrokenFrame */
    push(body: Uint8Array): ReadingAnswer<Result> | undefined;
  };
}

/** The process's side. */
export interface ReadingService<Request, Result> {
  /** Loads everything that reading needs. No file can be opened afterwards. */
  load(): Promise<void>;
  /** Reads in a separate thread, so the process can notice when it exceeds its memory. */
  read(request: Request): Promise<Result | ReadingFailure>;
  /** @throws BrokenFrame */
  decodeRequest(head: Uint8Array, body: Uint8Array): Request;
  /** The bodies of the answer's frames, each created on demand. */
  encodeAnswer(answer: ReadingAnswer<Result>): Iterable<Uint8Array>;
}
