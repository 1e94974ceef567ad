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
 * How the library works here, whoever uses it. No workers: it makes them of code in a blob's URL, which the page's
 * policy forbids. Without them its cap on workers still holds back files that are packed or unpacked at the same time, in any
 * archive: one reader that stops would stop all others, and files that are compared side by side each other.
 */
configure({ useWebWorkers: false, maxWorkers: Number.MAX_SAFE_INTEGER });

export { BlobReader, ERR_BAD_FORMAT, ERR_EOCDR_NOT_FOUND, type FileEntry, ZipReader, ZipWriter };
