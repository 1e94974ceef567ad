/** A thread like `sync-worker.ts`, of a disk that keeps nothing. */
declare const self: Worker;

self.onmessage = () => self.postMessage({ failed: "EIO" });
self.postMessage({ failed: null });
