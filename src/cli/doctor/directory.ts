import {
  accessSync,
  constants,
  lstatSync,
  readdirSync,
  readlinkSync,
  type Stats,
  statfsSync,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { databasePath } from "../../store/directory.ts";
import { bytesText, type Finding, fail, ok, warn } from "./finding.ts";

/** Below this, a server soon cannot record anything. */
const LEAST_FREE = 64 * 1024 * 1024;
const LITTLE_FREE = 1024 * 1024 * 1024;
const KEY_FILE = /\.key(\.next)?$/;

/** The data directory itself, and the disk that it is on. */
export function checkDirectory(directory: string): Finding[] {
  const stats = statSync(directory, { throwIfNoEntry: false });
  if (!stats) {
    const above = existingAbove(directory);
    return [
      isBrokenLink(directory)
        ? fail(
            "data directory",
            `${directory} is a link to something that does not exist`,
            "correct the link",
          )
        : warn("data directory", `${directory} does not exist yet`, "the first `gatehouse serve` creates it"),
      ...writable(above),
      disk(above, 0),
    ];
  }
  if (!stats.isDirectory()) {
    return [fail("data directory", `${directory} is not a directory`, "choose another one with --data")];
  }
  return [
    ...writable(directory),
    ...owner(directory, stats),
    ...modes(directory, stats),
    disk(directory, databaseBytes(directory)),
  ];
}

function existingAbove(directory: string): string {
  const above = dirname(directory);
  return above === directory || statSync(above, { throwIfNoEntry: false }) ? above : existingAbove(above);
}

function isBrokenLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true && readlinkSync(path) !== "";
}

function writable(directory: string): Finding[] {
  try {
    accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
    return [ok("data directory", `${directory} can be written`)];
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return [
      fail(
        "data directory",
        `${directory} cannot be written by this user (${code})`,
        code === "EROFS"
          ? "mount its file system for writing, or choose another directory with --data"
          : "run this as the server's user, or give that user the directory: chown -R USER DIR",
      ),
    ];
  }
}

/** Root can write everything, so files that it leaves cannot be used by the server afterwards. */
function owner(directory: string, stats: Stats): Finding[] {
  const uid = process.getuid?.();
  if (uid === undefined || stats.uid === uid) return [];
  return [
    warn(
      "owner",
      `${directory} belongs to another user (uid ${stats.uid}) than the one who runs this (uid ${uid})`,
      "run gatehouse as the user that owns it: the owner cannot use files that another user creates there",
    ),
  ];
}

function modes(directory: string, { mode }: Stats): Finding[] {
  const open = readableFiles(directory);
  const keys = open.filter((name) => KEY_FILE.test(name));
  if (keys.length > 0) {
    const files = keys.map((name) => join(directory, name)).join(" ");
    return [
      fail("access", `other users may read or change keys: ${keys.join(", ")}`, `run chmod 600 ${files}`),
    ];
  }
  if ((mode & 0o077) !== 0) {
    return [warn("access", `other users may access ${directory}`, `run chmod 700 ${directory}`)];
  }
  return [ok("access", "only its owner can use it")];
}

/** The files whose modes let other users in. */
function readableFiles(directory: string): string[] {
  try {
    return readdirSync(directory).filter((name) => {
      const stats = lstatSync(join(directory, name), { throwIfNoEntry: false });
      return stats?.isFile() && (stats.mode & 0o077) !== 0;
    });
  } catch {
    // Reported as a directory that cannot be written.
    return [];
  }
}

function databaseBytes(directory: string): number {
  return statSync(databasePath(directory), { throwIfNoEntry: false })?.size ?? 0;
}

function disk(directory: string, database: number): Finding {
  const { bavail, bsize, ffree, files } = statfsSync(directory);
  return freeSpace(bavail * bsize, files > 0 && ffree === 0, database);
}

/** @param database the size of the database in bytes. An upgrade may need that twice, and a backup one and a half times */
export function freeSpace(free: number, hasNoInodes: boolean, database: number): Finding {
  const hint = "free some space, or move the directory to a larger disk";
  if (hasNoInodes) return fail("disk", "no file can be created: the disk has no inodes left", "remove files");
  const message = `${bytesText(free)} are free`;
  if (free < LEAST_FREE) return fail("disk", message, hint);
  if (free < Math.max(LITTLE_FREE, 2 * database)) {
    const need = database > LITTLE_FREE ? `; the database has ${bytesText(database)}` : "";
    return warn("disk", `${message}${need}`, hint);
  }
  return ok("disk", message);
}
