import type { Db, Tx } from "../../store/db.ts";
import type { Task } from "../task.ts";

/** Blocks of events (64 KiB each) processed in one transaction. */
const BLOCKS_AT_ONCE = 4;

/** Which of a task's texts to erase. */
export interface ErasedTexts {
  /** The prompt or messages, with the schema of the output. */
  readonly prompt: boolean;
  /** Ids of the calls whose arguments to erase. */
  readonly argumentsOf: ReadonlySet<string> | "all";
  /** The output and the model's text, either after the result of a call or entirely. Null: neither. */
  readonly output: { readonly afterCall: string | null } | null;
}

export const ALL_TEXTS: ErasedTexts = { prompt: true, argumentsOf: "all", output: { afterCall: null } };

/**
 * Removes texts from a finished task's stored events when they are erased from its payloads: the model's text is
 * removed, arguments become null, and `task.finished` shows the task without the erased texts. Events keep their ids;
 * ids of removed events are skipped. Erased texts stay erased, because each frame is derived from its stored form and
 * not from anything read earlier.
 *
 * @param changing called in each transaction that removes something
 */
export async function eraseEvents(
  db: Db,
  task: Pick<Task, "workspaceId" | "id">,
  texts: ErasedTexts,
  changing: (tx: Tx) => Promise<void> = async () => {},
): Promise<void> {
  const eraser = new FrameEraser(texts);
  const blocks = await db.all<{ first_id: number }>(
    "SELECT first_id FROM task_events WHERE workspace_id = $1 AND task_id = $2 ORDER BY first_id",
    [task.workspaceId, task.id],
  );
  for (let at = 0; at < blocks.length; at += BLOCKS_AT_ONCE) {
    await db.tx(
      null,
      async (tx) => {
        eraser.join(tx);
        let isChanged = false;
        for (const { first_id } of blocks.slice(at, at + BLOCKS_AT_ONCE)) {
          if (await eraseBlock(tx, [task.workspaceId, task.id, first_id], eraser)) isChanged = true;
        }
        if (isChanged) await changing(tx);
      },
      { turnOf: task.workspaceId },
    );
  }
}

interface Frame {
  readonly event: string;
  readonly data: Readonly<Record<string, unknown>>;
}

class FrameEraser {
  readonly #texts: ErasedTexts;
  /** Whether the output is erased from the next frame on. */
  #isAfter: boolean;

  constructor(texts: ErasedTexts) {
    this.#texts = texts;
    this.#isAfter = texts.output !== null && texts.output.afterCall === null;
  }

  /** Called before the frames of a transaction: if it is undone, they are passed again. */
  join(tx: Tx): void {
    const before = this.#isAfter;
    tx.onRollback(() => {
      this.#isAfter = before;
    });
  }

  /**
   * Called for each frame in order; returns the remaining data. Null: remove the frame. Undefined: leave it unchanged.
   */
  erase({ event, data }: Frame): object | null | undefined {
    const { prompt, argumentsOf, output } = this.#texts;
    const isErased = (call: unknown) =>
      argumentsOf === "all" || (typeof call === "string" && argumentsOf.has(call));
    if (event === "output.delta") return this.#isAfter ? null : undefined;
    if (event === "tool.result" && output !== null && data.id === output.afterCall) this.#isAfter = true;
    if (event === "task.finished") {
      return {
        ...data,
        ...(prompt ? nulled(data, ["prompt", "messages", "output_schema", "output_json"]) : {}),
        ...(output ? nulled(data, ["output", "output_json"]) : {}),
        tools_called: withoutArguments(data.tools_called, isErased),
      };
    }
    // `tool.call`, and every other event that shows a call's arguments.
    const names = "arguments" in data && isErased(data.id ?? data.call_id);
    return names ? { ...data, arguments: null } : undefined;
  }
}

/** The given fields that exist, set to null. */
function nulled(data: Frame["data"], names: readonly string[]): object {
  return Object.fromEntries(names.filter((name) => name in data).map((name) => [name, null]));
}

function withoutArguments(calls: unknown, isErased: (call: unknown) => boolean): unknown {
  if (!Array.isArray(calls)) return calls;
  return calls.map((call: { readonly id?: unknown }) =>
    isErased(call.id) ? { ...call, arguments: null } : call,
  );
}

type BlockKey = readonly [workspaceId: number, taskId: string, firstId: number];

/** @returns whether anything was removed */
async function eraseBlock(tx: Tx, key: BlockKey, eraser: FrameEraser): Promise<boolean> {
  const where = "WHERE workspace_id = $1 AND task_id = $2 AND first_id = $3";
  const row = await tx.get<{ frames: Uint8Array }>(`SELECT frames FROM task_events ${where}`, [...key]);
  if (!row) return false;
  const before = new TextDecoder().decode(row.frames);
  const after = before
    .split("\n\n")
    .slice(0, -1)
    .map((frame) => leftOf(frame, eraser))
    .join("");
  if (after === before) return false;
  if (after === "") tx.write(`DELETE FROM task_events ${where}`, [...key]);
  else tx.write(`UPDATE task_events SET frames = $4 ${where}`, [...key, new TextEncoder().encode(after)]);
  return true;
}

/** `frame` is in the form written by `encodeFrame`, without its empty line. */
function leftOf(frame: string, eraser: FrameEraser): string {
  const [id = "", event = "", data = ""] = frame.split("\n");
  const left = eraser.erase({
    event: event.slice("event: ".length),
    data: JSON.parse(data.slice("data: ".length)) as Frame["data"],
  });
  if (left === null) return "";
  return left === undefined ? `${frame}\n\n` : `${id}\n${event}\ndata: ${JSON.stringify(left)}\n\n`;
}
