import { createHash } from "node:crypto";
import { createTarDecoder, createTarPacker } from "modern-tar";
import {
  FORMAT,
  MANIFEST_LIMIT,
  MANIFEST_NAME,
  type Manifest,
  MEMBERS,
  manifestValidator,
} from "./manifest.ts";

/*
 * A backup is a tar archive (POSIX ustar) of `manifest.json` and the files that it names, followed by one line with the
 * digest of all bytes before it. Without this program: `head -c -73 FILE | sha256sum`, and `tar xf FILE`, which ignores
 * the line.
 */

const TRAILER_BYTES = 73;
const TRAILER = /^\nsha256:([0-9a-f]{64})\n$/;

/** A file of an archive, read once. */
export interface Member {
  readonly name: string;
  readonly bytes: number;
  readonly content: ReadableStream<Uint8Array>;
}

/** The archive is not a backup, or not as it was written. */
export class BackupDamaged extends Error {
  override readonly name = "BackupDamaged";
}

/** @yields the bytes of a backup whose manifest names the members in this order */
export async function* writeArchive(
  manifest: Manifest,
  members: AsyncIterable<Member>,
): AsyncGenerator<Uint8Array, void> {
  const { readable, controller } = createTarPacker();
  const mtime = new Date(manifest.created_at);
  const add = async ({ name, bytes, content }: Member) => {
    const body = controller.add({ name, size: bytes, mtime, mode: 0o600, uid: 0, gid: 0, type: "file" });
    await content.pipeTo(body);
  };
  const packing = (async () => {
    const text = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
    if (text.length > MANIFEST_LIMIT) throw new Error("the manifest is too large to be read again");
    await add({ name: MANIFEST_NAME, bytes: text.length, content: new Blob([text]).stream() });
    for await (const member of members) await add(member);
    controller.finalize();
  })().catch((error: unknown) => controller.error(error));
  const hash = createHash("sha256");
  for await (const chunk of readable) {
    hash.update(chunk);
    yield chunk;
  }
  await packing;
  yield Buffer.from(`\nsha256:${hash.digest("hex")}\n`);
}

/**
 * Compares all bytes of a backup with the digest at its end.
 * @param seen called with the number of bytes of each piece that was read
 * @throws BackupDamaged
 */
export async function checkArchive(file: Blob, seen: (bytes: number) => void): Promise<void> {
  const end = Math.max(0, file.size - TRAILER_BYTES);
  const [, expected] = TRAILER.exec(await file.slice(end).text()) ?? [];
  if (expected === undefined) {
    throw new BackupDamaged("it does not end as a backup does: it is cut off, damaged or something else");
  }
  const hash = createHash("sha256");
  for await (const chunk of file.slice(0, end).stream()) {
    hash.update(chunk);
    seen(chunk.length);
  }
  if (hash.digest("hex") !== expected) {
    throw new BackupDamaged(
      "it has changed since it was written: its digest differs from the one at its end",
    );
  }
}

/** The archive's content, once its bytes were compared with `checkArchive`. */
export interface OpenArchive {
  readonly manifest: Manifest;
  /** To be read one after another, each completely. @throws BackupDamaged if it is not what the manifest names */
  readonly members: AsyncIterable<Member>;
}

/** @throws BackupDamaged also if a newer program has written it */
export async function openArchive(file: Blob): Promise<OpenArchive> {
  const entries = file
    .slice(0, file.size - TRAILER_BYTES)
    .stream()
    .pipeThrough(createTarDecoder({ strict: true }))
    .getReader();
  const next = async (): Promise<Member | undefined> => {
    const { done, value } = await entries.read();
    if (done) return undefined;
    const { name, size, type } = value.header;
    if (type !== undefined && type !== "file") throw new BackupDamaged(`${name} in it is not a file`);
    return { name, bytes: size, content: value.body };
  };
  const manifest = await readManifest(await next());
  return { manifest, members: named(manifest, next) };
}

async function* named(
  { files }: Manifest,
  next: () => Promise<Member | undefined>,
): AsyncGenerator<Member, void> {
  for (const { name, bytes } of files) {
    const member = await next();
    if (member?.name !== name || member.bytes !== bytes) {
      throw new BackupDamaged(
        `its manifest names ${name} of ${bytes} bytes, which it does not have in that place`,
      );
    }
    yield member;
  }
  const more = await next();
  if (more) throw new BackupDamaged(`its manifest does not name ${more.name}`);
}

async function readManifest(member: Member | undefined): Promise<Manifest> {
  if (member?.name !== MANIFEST_NAME || member.bytes > MANIFEST_LIMIT) {
    throw new BackupDamaged("it does not begin with a manifest");
  }
  let manifest: unknown;
  try {
    manifest = JSON.parse(await new Response(member.content).text());
  } catch {
    throw new BackupDamaged("its manifest is not JSON");
  }
  if (!manifestValidator.is(manifest)) {
    throw new BackupDamaged(
      `its manifest does not match the format ${FORMAT}: a newer program may have written it`,
    );
  }
  const names = manifest.files.map(({ name }) => name);
  const unknown = names.find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) throw new BackupDamaged(`its manifest names an unknown file, ${unknown}`);
  if (new Set(names).size < names.length) throw new BackupDamaged("its manifest names a file twice");
  return manifest;
}
