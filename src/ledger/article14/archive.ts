import type { BundleFileDigest } from "./format/manifest.ts";
import { ZipWriter } from "./format/zip.ts";

/** One file, produced while it is read. */
export interface ArchiveFile {
  readonly name: string;
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/**
 * A zip archive, produced as it is read. Only a few chunks are read ahead of the consumer, and no file is held in
 * memory as a whole. Sizes that are unknown in advance follow each file's data (as zip64 if needed).
 *
 * @param files The next file is requested once the previous one is complete.
 * @param at The modification time of all files, in milliseconds.
 * @throws whatever producing a file throws, and the reason of `signal`. The bytes returned until then are not a
 *   complete archive.
 */
export async function* zip(
  files: AsyncIterable<ArchiveFile>,
  at: number,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  signal?.throwIfAborted();
  const pipe = new TransformStream<Uint8Array, Uint8Array>();
  const output = pipe.writable.getWriter();
  const reader = pipe.readable.getReader();
  const stopped = new AbortController();
  const stop = () => stopped.abort(signal?.reason);
  signal?.addEventListener("abort", stop, { once: true });
  // Failures reach the reader, even between two files, where the library does not notice them.
  const fail = (error: unknown) => output.abort(error).catch(() => {});
  const writing = write().catch(fail);

  async function write(): Promise<void> {
    const target = new WritableStream<Uint8Array>({ write: (chunk) => output.write(chunk) });
    const writer = new ZipWriter(target, { lastModDate: new Date(at), rawLastModDate: dosTime(at) });
    for await (const { name, chunks } of files) {
      await writer.add(name, readableOf(chunks), { signal: stopped.signal });
    }
    await writer.close();
    await output.close();
  }

  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      signal?.throwIfAborted();
      yield next.value;
    }
  } finally {
    signal?.removeEventListener("abort", stop);
    stopped.abort(new Error("the archive's reader has stopped"));
    await reader.cancel().catch(() => {});
    await writing;
  }
}

/**
 * The modification time as zip headers store it: in steps of two seconds, in UTC. The library would use this
 * machine's time zone.
 */
function dosTime(at: number): number {
  const time = new Date(at);
  const date = ((time.getUTCFullYear() - 1980) << 9) | ((time.getUTCMonth() + 1) << 5) | time.getUTCDate();
  const clock = (time.getUTCHours() << 11) | (time.getUTCMinutes() << 5) | (time.getUTCSeconds() >> 1);
  return ((date << 16) | clock) >>> 0;
}

function readableOf(chunks: ArchiveFile["chunks"]): ReadableStream<Uint8Array> {
  const iterator =
    Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await iterator.next();
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/** Passes chunks on, counting and hashing them. `digest` receives the result at the end. */
export async function* digested(
  chunks: ArchiveFile["chunks"],
  digest: (digest: BundleFileDigest) => void,
): AsyncGenerator<Uint8Array, void> {
  const hasher = new Bun.CryptoHasher("sha256");
  let size = 0;
  for await (const chunk of chunks) {
    hasher.update(chunk);
    size += chunk.length;
    yield chunk;
  }
  digest({ sha256: hasher.digest("hex"), size });
}
