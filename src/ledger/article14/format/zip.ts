import {
  BlobReader,
  configure,
  ERR_BAD_FORMAT,
  ERR_EOCDR_NOT_FOUND,
  type FileEntry,
  ZipReader,
  ZipWriter,
} from "@zip.js/zip.js/lib/zip-core-native.js";

/**
 * Settings of the zip library for all uses in this program. No workers: it would load them from blob URLs, which the
 * page's policy forbids. Even without workers, its limit on them would queue files that are packed or unpacked at the
 * same time, across all archives. One stalled reader would then stall all others, and files that are compared side by
 * side would block each other.
 */
configure({ useWebWorkers: false, maxWorkers: Number.MAX_SAFE_INTEGER });

export { BlobReader, ERR_BAD_FORMAT, ERR_EOCDR_NOT_FOUND, type FileEntry, ZipReader, ZipWriter };
