import { syncNow } from "./sync-now.ts";

/** The program of `SyncThread`: each message is a descriptor of a file to sync. */
declare const self: Worker;

export interface SyncReply {
  /** The error's code; null if the file is on disk. */
  readonly failed: string | null;
}

const reply = (failed: string | null): void => self.postMessage({ failed } satisfies SyncReply);

self.onmessage = ({ data }: MessageEvent<number>) => reply(syncNow(data));
reply(null);
