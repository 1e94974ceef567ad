import { OperatorError } from "../../base/errors.ts";
import { refusal, withGateway } from "../operator.ts";
import { type ConfigOptions, resolveConfig } from "../options.ts";
import { type OutputFile, openOutputFile } from "./output-file.ts";

export const EXPORT_FORMATS = ["article14", "ndjson", "csv", "json"] as const;
const FILTERS = ["from", "to", "date", "agent", "actor", "action", "tier"] as const;

export interface ExportOptions
  extends ConfigOptions,
    Readonly<Partial<Record<(typeof FILTERS)[number], string>>> {
  readonly output: string;
  readonly format: (typeof EXPORT_FORMATS)[number];
  readonly workspace: string;
}

/** Writes the ledger, or what filters let through, into a file that is there once it is whole. */
export async function exportLedger(options: ExportOptions): Promise<void> {
  const { output, format } = options;
  if (output === "-" && format === "article14" && process.stdout.isTTY) {
    throw new OperatorError(
      "an Article 14 bundle is a zip, which is not written to a terminal",
      "name a file with --output",
      2,
    );
  }
  const { config } = await resolveConfig(options);
  await withGateway(config, options.workspace, async (api) => {
    const response = await api.fetch("GET", `/v1/ledger?${queryOf(options)}`);
    if (!response.ok) throw await refusal(response);
    await save(response, options);
  });
}

async function save(response: Response, { output, format }: ExportOptions): Promise<void> {
  const progress = new BytesWritten(process.stderr, () => performance.now());
  const stop = stoppedBySignals();
  let file: OutputFile | undefined;
  try {
    const chunks = read(response, stop.signal);
    file = await openOutputFile(output);
    for await (const bytes of format === "json" ? asArray(chunks) : chunks) {
      if (!(await file.write(bytes))) return;
      if (output !== "-") progress.add(bytes.length);
    }
    await file.keep();
  } catch (error) {
    await file?.discard();
    // Where nobody reads it yet.
    await response.body?.cancel().catch(() => {});
    throw error;
  } finally {
    progress.end();
    stop.release();
  }
}

/** JSON is made here of lines: as a list the server has it by pages alone. */
function queryOf(options: ExportOptions): URLSearchParams {
  const query = new URLSearchParams({ format: options.format === "json" ? "ndjson" : options.format });
  for (const name of FILTERS) {
    const value = options[name];
    if (value !== undefined) query.set(name, value);
  }
  return query;
}

/** @throws OperatorError where the answer breaks off: it is known by its missing end mark, and by a signal to this process */
async function* read({ body }: Response, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader();
  if (!reader) return;
  const leave = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    for (;;) {
      const next = await reader.read().catch((error: unknown) => {
        throw brokenOff(error);
      });
      if (signal.aborted) throw signal.reason;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

function brokenOff(error: unknown): OperatorError {
  // Of a connection that is lost, the message is for those who write programs.
  const isLost = error instanceof Error && "code" in error;
  const why = isLost ? String(error.code) : error instanceof Error ? error.message : String(error);
  return new OperatorError(
    `the export broke off before its end (${why})`,
    "see the server's log, and ask again; a file is there only when all of it is",
  );
}

/** A line for each entry becomes an array, as it comes. */
async function* asArray(lines: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  yield encoder.encode("[\n");
  // The end of a line is held back until there is another one.
  let held = "";
  for await (const bytes of lines) {
    const text = held + decoder.decode(bytes, { stream: true });
    held = text.endsWith("\n") ? "\n" : "";
    yield encoder.encode(text.slice(0, text.length - held.length).replaceAll("\n", ",\n"));
  }
  yield encoder.encode(`${held}]\n`);
}

/** Ctrl-C leaves no half of a file behind. */
function stoppedBySignals(): { readonly signal: AbortSignal; release(): void } {
  const control = new AbortController();
  const stop = () => control.abort(new OperatorError("stopped before the export was whole"));
  for (const name of ["SIGINT", "SIGTERM"] as const) process.once(name, stop);
  return {
    signal: control.signal,
    release() {
      for (const name of ["SIGINT", "SIGTERM"] as const) process.off(name, stop);
    },
  };
}

const REDRAW_MS = 100;
const CLEAR = "\r\u001B[2K";

/** How much it is so far, on standard error where that is a terminal. */
class BytesWritten {
  readonly #to: NodeJS.WriteStream;
  readonly #now: () => number;
  #bytes = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;

  constructor(to: NodeJS.WriteStream, now: () => number) {
    this.#to = to;
    this.#now = now;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (!this.#to.isTTY || this.#now() - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = this.#now();
    this.#to.write(`${CLEAR}${(this.#bytes / 1e6).toFixed(1)} MB written`);
  }

  end(): void {
    if (this.#drawnAt !== Number.NEGATIVE_INFINITY) this.#to.write(CLEAR);
  }
}
