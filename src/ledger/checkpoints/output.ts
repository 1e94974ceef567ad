import type { CheckpointFile } from "./file.ts";

/** Where checkpoints go once they are stored. */
export interface CheckpointOutput {
  /** Called with checkpoints that this node has signed, in order. MUST NOT throw. */
  append(workspaceId: number, notes: readonly string[]): void;
  /** Resolves once everything that can be written is written. */
  close(): Promise<void>;
}

/** The output of the only process that signs: its file, if it has one. */
export function fileOutput(file: CheckpointFile | null): CheckpointOutput {
  return {
    append(_, notes) {
      file?.append(notes);
    },
    async close() {
      await file?.close();
    },
  };
}
