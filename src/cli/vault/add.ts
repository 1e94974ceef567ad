import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { OperatorError } from "../../base/errors.ts";
import { DOCUMENT_BYTES } from "../../vault/fields.ts";
import { UnreadableDocument } from "../../vault/read/fault.ts";
import { parseContentType } from "../../vault/read/media-type.ts";
import { type OperatorApi, refusal, withGateway } from "../operator.ts";
import { type ConfigOptions, resolveConfig } from "../options.ts";
import { checkScope, type MetadataArguments, readPairs } from "./arguments.ts";
import { contentOf, type FileContent } from "./content.ts";
import { type DocumentFile, findFiles, reasonOf } from "./files.ts";
import { type ExistingDocument, knownDocuments } from "./known.ts";
import { NOTHING, type UploadOutcome, UploadReport, type UploadStatus } from "./report.ts";
import { documentsFault, send, UploadInterrupted } from "./send.ts";

const AT_ONCE = 4;

export interface AddOptions extends ConfigOptions {
  readonly scope: string;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly type?: string;
  readonly metadata?: readonly string[];
  readonly dryRun?: boolean;
  readonly workspace: string;
  readonly json?: boolean;
}

/** Properties given to the documents. */
interface DocumentDefaults {
  readonly scope: string;
  /** Undefined: existing metadata is kept. */
  readonly metadata: MetadataArguments | undefined;
  readonly isDry: boolean;
}

/** `gatehouse vault add`. @throws OperatorError if a file failed, and for wrong usage before anything is sent */
export async function addFiles(paths: readonly string[], options: AddOptions): Promise<void> {
  const wish = wishOf(options);
  if (options.type !== undefined) checkType(options.type);
  const { config } = await resolveConfig(options);
  const found = findFiles(paths, {
    ...(options.include === undefined ? {} : { include: options.include }),
    ...(options.exclude === undefined ? {} : { exclude: options.exclude }),
    ...(options.type === undefined ? {} : { type: options.type }),
    private: config.dataDir,
  });
  const report = new UploadReport(found, options);
  const interrupt = onInterrupt(() =>
    report.say("stopping after the files in progress (press again to stop now)"),
  );
  try {
    if (found.files.length > 0) {
      await withGateway(config, options.workspace, (api) =>
        sendAll(api, found.files, wish, interrupt.signal, (outcome) => report.take(outcome)),
      );
    }
  } catch (error) {
    // Report what was done before reporting why it ended.
    if (report.left < found.files.length) report.end();
    if (!(error instanceof UploadInterrupted)) throw error;
    throw new OperatorError(
      `interrupted: ${report.left} of ${found.files.length} files were not sent`,
      "run it again: documents already added are left unchanged",
    );
  } finally {
    interrupt.end();
  }
  report.end();
  if (report.failed > 0) {
    throw new OperatorError(`${report.failed} ${report.failed === 1 ? "file" : "files"} failed`);
  }
}

function wishOf(options: AddOptions): DocumentDefaults {
  checkScope(options.scope);
  const metadata = options.metadata === undefined ? undefined : readPairs("--metadata", options.metadata);
  return { scope: options.scope, metadata, isDry: options.dryRun ?? false };
}

function checkType(type: string): void {
  try {
    parseContentType(type);
  } catch (error) {
    if (!(error instanceof UnreadableDocument)) throw error;
    throw new OperatorError(`--type: ${error.message}`, undefined, 2);
  }
}

/** @throws Interrupted if files are left; any other error that would affect every file */
async function sendAll(
  api: OperatorApi,
  files: readonly DocumentFile[],
  wish: DocumentDefaults,
  stop: AbortSignal,
  tell: (outcome: UploadOutcome) => void,
): Promise<void> {
  const sources = files.map(({ real }) => pathToFileURL(real).href);
  const known = await knownDocuments(api, sources, stop);
  const waiting = files.entries();
  let ended: unknown;
  const worker = async () => {
    for (const [index, file] of waiting) {
      try {
        const source = sources[index] ?? "";
        tell({
          ...NOTHING,
          path: file.path,
          ...(await sendFile(api, file, source, known.get(source), wish, stop)),
        });
      } catch (error) {
        ended ??= error;
      }
      if (ended !== undefined) return;
    }
  };
  await Promise.all(Array.from({ length: wish.isDry ? 1 : AT_ONCE }, worker));
  if (ended !== undefined) throw ended;
}

async function sendFile(
  api: OperatorApi,
  file: DocumentFile,
  source: string,
  known: ExistingDocument | undefined,
  wish: DocumentDefaults,
  stop: AbortSignal,
): Promise<Partial<UploadOutcome> & { readonly status: UploadStatus }> {
  stop.throwIfAborted();
  const content = await read(file);
  if (typeof content === "string") {
    // Skipping an empty file loses nothing, unless it replaces a document.
    const status = content === EMPTY && !known ? "skipped" : "failed";
    return { status, id: known?.id ?? null, reason: content };
  }
  const { title } = content;
  const wanted = { title, scope: wish.scope, metadata: wish.metadata ?? known?.metadata ?? {} };
  const id = known?.id ?? null;
  if (known && isSame(known, content, wanted)) return { status: "unchanged", id, title };
  const body = { ...(known ? { id: known.id } : {}), ...wanted, source_uri: source, ...content.body };
  if (Buffer.byteLength(JSON.stringify(body)) > DOCUMENT_BYTES)
    return { status: "failed", id, title, reason: TOO_LARGE };
  if (wish.isDry) return { status: known ? "replaced" : "added", id, title };
  const response = await send(api, "POST", "/v1/vault/documents", body, stop);
  if (!response.ok) {
    const reason = await documentsFault(response);
    if (reason === undefined) throw await refusal(response);
    return { status: "failed", id, title, reason };
  }
  const document = (await response.json()) as ExistingDocument;
  return { status: response.status === 201 ? "added" : "replaced", id: document.id, title };
}

const EMPTY = "is empty";
const TOO_LARGE = `is too large: a document may have ${DOCUMENT_BYTES / 1024 ** 2} MiB as sent, a PDF or DOCX three quarters of that`;

/** The content to send, or why the file cannot be sent. */
async function read({ path, real, type }: DocumentFile): Promise<FileContent | string> {
  try {
    if ((await stat(real)).size > DOCUMENT_BYTES) return TOO_LARGE;
    const bytes = await readFile(real);
    return bytes.length === 0 ? EMPTY : contentOf(basename(path), bytes, type);
  } catch (error) {
    return reasonOf(error);
  }
}

function isSame(
  known: ExistingDocument,
  { hash, body }: FileContent,
  wanted: { readonly title: string; readonly scope: string; readonly metadata: MetadataArguments },
): boolean {
  return (
    known.content_hash === hash &&
    known.content_type === body.content_type &&
    known.title === wanted.title &&
    known.scope === wanted.scope &&
    isDeepStrictEqual(known.metadata, { ...wanted.metadata })
  );
}

/** The first Ctrl-C (or SIGTERM) asks to stop; the second ends the program. */
function onInterrupt(tell: () => void): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(1);
    controller.abort(new UploadInterrupted());
    tell();
  };
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  return {
    signal: controller.signal,
    end() {
      process.off("SIGINT", interrupt);
      process.off("SIGTERM", interrupt);
    },
  };
}
