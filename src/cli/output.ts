import { writeSync } from "node:fs";

const STANDARD_ERROR = 2;

/**
 * Readers of standard output may leave early, as `head` does. The command continues without them: documents are still
 * added and a gateway still closes cleanly. Any other failure, such as a full disk, ends the command with exit code
 * 1. A log that cannot be written never ends a server.
 */
export function allowFailingOutput(): void {
  let isReported = false;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || isReported) return;
    isReported = true;
    process.exitCode = 1;
    tell(`gatehouse: standard output cannot be written (${error.code ?? error.message})`);
  });
  process.stderr.on("error", () => {
    // There is nowhere left to report it.
  });
}

function tell(line: string): void {
  try {
    writeSync(STANDARD_ERROR, `${line}\n`);
  } catch {
    // There is nowhere left to report it except the exit code.
  }
}

/** Writes a command's result to standard output, which gets nothing else. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** Prints rows in columns as wide as their widest cells. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  for (const row of all)
    print(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}
